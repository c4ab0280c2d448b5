// Removes the words of deleted threads from Redis: from payloads, results and claims, and the
// reasons of failures. There is no index of threads, because posts would pay for it. A purge
// examines all jobs and the results of the tenants, in slices. After each slice, it rests for twice
// the time that the slice took, so that Redis serves others.
import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { contentOf, ERASED, REDACTED, type Redacts, withErased } from '@sluice/contract'
import { createGroupCommit } from '@sluice/process'
import { asList, openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import {
  type CompletedJob,
  type FetchedJob,
  type IngestJob,
  type JobResult,
  NAME_DIGITS,
  nameDigits,
  outcomeOf,
  type QueuedThread,
  readPayload,
  receiptOfDeleted,
  receiptWithoutWords,
} from '../job/job.ts'
import { jobKeysIn, ownStore, type QueueKeys, walkKeys } from '../job/lanes.ts'

type Name = NonNullable<StoredDeletion['name']>

/** The most deletions of one purge, because each slice gets the names of all. */
const MOST = 500
/** An erasure examines this number of results in a step. */
const RESULTS_AT_ONCE = 50
/** After a slice, Redis serves others for this many times as long as the slice took. */
const REST = 2

export type Purge = ReturnType<typeof createPurge>

/** Makes the functions that keep the words of what was deleted out of Redis. */
export function createPurge(redis: Redis, keys: QueueKeys, ids: Ids) {
  const { base } = keys
  const lanes = Object.values(keys.jobs)
  const begin = openScript(redis, new URL('./purge.lua#begin', import.meta.url))
  const scan = openScript(redis, new URL('./purge.lua#scan', import.meta.url))
  const rewrite = openScript(redis, new URL('./purge.lua#rewrite', import.meta.url))
  // Look through the failed jobs twice, because a job may fail meanwhile. A job that completes
  // meanwhile has become a result.
  const failed = lanes.map((key) => ({ kind: 'failed', key }))
  const jobSteps = [...failed, { kind: 'load', key: `${base}load:jobs` }, ...failed]

  async function examine(
    steps: readonly { kind: string; key: string }[],
    searched: { tenants: readonly string[]; digits?: string[]; names?: string[] },
    onFound: (key: string, names: readonly Name[]) => unknown,
  ): Promise<void> {
    const sets = Object.entries(searched).map(([name, texts]) => [name, asKeys(texts)])
    const input = { lanes, steps, digits: {}, ...Object.fromEntries(sets) }
    for (let [at, cursor] = [1, '0']; at <= steps.length; ) {
      const began = performance.now()
      const [nextAt, next, found] = asList(await scan(base, { ...input, at, cursor }))
      const tookMs = performance.now() - began
      for (const [key, list] of asList(found).map(asList))
        await onFound(String(key), asList(list).map(readName))
      ;[at, cursor] = [Number(nextAt), String(next)]
      if (at <= steps.length) await delay(REST * tookMs)
    }
  }

  /**
   * Rewrites the payload of a job, or of a retained result, again if it changes meanwhile. Removes a
   * damaged payload, because nobody can tell whose words it has. Returns whether it rewrote it.
   * @param find returns the deletions that concern a payload.
   * @param always rewrites the result even if no deletion concerns the payload.
   */
  async function rewriteAt(key: string, find: FindDeletions, always = false): Promise<boolean> {
    for (let isDone = false; !isDone; ) {
      const [data, result] = await redis.hmget(key, 'data', 'result')
      if (!data) return false
      const job = readPayload(data)
      const isDamaged = job.threads.length === 0
      const left = withoutWords(job, await find(job), ids)
      const text = isDamaged ? '' : JSON.stringify(left)
      if ((left === job || text === data) && !always && !isDamaged) return false
      const kept: JobResult | '' = result ? resultWithout(left, JSON.parse(result)) : ''
      const about = [jobIdIn(key), left.purged ?? 0, left.claim ?? '']
      isDone = (await rewrite(base, key, hash('sha1', data), text, kept, ...about)) === 1
    }
    return true
  }

  async function purgeAll(deletions: readonly StoredDeletion[]): Promise<void> {
    const tenants = [...new Set(deletions.map(({ tenant }) => tenant))]
    const deleted = new Set(deletions.map(({ tenant, sourceId }) => `${sourceId} ${tenant}`))
    const names = deletions.flatMap(({ name }) => name ?? [])
    const digitsOf = (some: readonly Name[]) => some.map((one) => nameDigits(one.externalId))
    const rewriteIt = (key: string) => rewriteAt(key, () => deletions)
    async function rewriteJob(key: string, inJob: readonly Name[]): Promise<void> {
      const found = inJob.filter((name) =>
        tenants.some((tenant) => deleted.has(`${ids.sourceIdOf(tenant, name)} ${tenant}`)),
      )
      names.push(...found)
      if (found.length > 0 || inJob.length === 0) await rewriteIt(key)
    }
    // If a source was deleted by its id before it was stored, only jobs know its name.
    const areAll = names.length === deletions.length
    const only = areAll && { digits: digitsOf(names), names: names.map(asInPayload) }
    await examine(jobSteps, { tenants, ...only }, rewriteJob)
    if (names.length === 0) return
    const digits = [...new Set(digitsOf(names))]
    const [groups, streams] = asList(await begin(base, ...lanes, ...digits))
    const storesOf = (name: string) => tenants.map((tenant) => ownStore(`${base}${name}`, tenant))
    const results = {
      transient: asList(groups),
      replies: asList(streams),
      retained: storesOf('retained'),
      claims: storesOf('claims'),
    }
    const steps = Object.entries(results).flatMap(([kind, found]) =>
      found.map((key) => ({ kind, key: String(key) })),
    )
    await examine(steps, { tenants, digits }, rewriteIt)
  }

  return {
    /**
     * Removes from Redis the words of what was deleted. Call it once the deletion is stored: a
     * worker that read the source before can then write none of them. Deletions that wait share the
     * next purge.
     */
    purge: createGroupCommit(
      async (deletions: StoredDeletion[]) => {
        await purgeAll(deletions)
        return deletions.map(() => true)
      },
      (gathered) => [...gathered.slice(0, MOST).keys()],
    ),
    purgeAt: rewriteAt,
    /**
     * Removes words from the retained results and the claims of a tenant. A result may still have
     * an erased name that a later post has corrected. Yields after each step.
     * @param find returns the deletions that concern a payload.
     */
    async *purgeResults(
      tenant: string,
      find: FindDeletions,
      isErased: (name: string) => boolean,
    ): AsyncGenerator<void> {
      const digits: string[] = []
      for (const [store, prefix] of [
        ['retained', 'retained:'],
        ['claims', 'claim:'],
      ])
        for (let at = 0, found = ['']; found.length > 0; at += found.length) {
          const newestFirst = `${ownStore(`${base}${store}`, tenant)}:age`
          found = await redis.zrevrange(newestFirst, at, at + RESULTS_AT_ONCE - 1)
          for (const member of found) {
            const key = `${base}${prefix}${member}`
            const [job, result] = await redis.hmget(key, 'job', 'result')
            const isNamed = namesIn(result ?? '').some(isErased)
            if (isNamed) digits.push((job ?? member).slice(-NAME_DIGITS))
            await rewriteAt(key, find, isNamed)
          }
          yield
        }
      await begin(base, ...lanes, ...digits)
      const claims = { kind: 'claims', key: ownStore(`${base}claims`, tenant) }
      await examine([claims], { tenants: [], digits }, () => {})
    },
    /**
     * Removes words from all jobs of a queue that no process uses. Returns the number of jobs that
     * it changed.
     * @param find returns the deletions that concern a payload.
     */
    async purgeJobs(find: FindDeletions): Promise<number> {
      const changed = new Set<string>()
      for await (const some of walkKeys(redis, keys))
        for (const key of jobKeysIn(keys, some)) if (await rewriteAt(key, find)) changed.add(key)
      return changed.size
    },
    /** Replaces the payload of a fetched job, unless it has changed since. */
    async writePayload(job: Pick<FetchedJob, 'id' | 'lane' | 'data'>, data: IngestJob) {
      const [before, after] = [job.data, data].map((one) => JSON.stringify(one))
      const key = keys.jobs[job.lane] + job.id
      await rewrite(base, key, hash('sha1', before ?? ''), after ?? '', '', job.id, 0, '')
    },
  }
}

/** The key of a job, and of a retained result, ends with the job's id. */
const jobIdIn = (key: string) => key.slice(-36)

const asKeys = (texts: readonly string[]) => Object.fromEntries(texts.map((text) => [text, true]))

/** Writes a name as the payload of a job has it, and as purge.lua reads it. */
function asInPayload({ service, externalId }: Name): string {
  return `${service}/${JSON.stringify(externalId).slice(1, -1)}`
}

function readName(text: unknown): Name {
  const [, service = '', externalId = ''] = /^([^/]*)\/([\s\S]*)$/.exec(String(text)) ?? []
  return { service, externalId: JSON.parse(`"${externalId}"`) }
}

/** A deletion that is stored. */
export interface StoredDeletion {
  tenant: string
  stamp: number
  sourceId: string
  /** Present if only these quotes of the source were deleted. */
  quoteIds?: readonly string[] | undefined
  redacts?: Redacts | undefined
  /** Absent if only the source's id is known. */
  name?: { service: string; externalId: string } | undefined
}

type FindDeletions = (
  job: IngestJob,
) => readonly StoredDeletion[] | Promise<readonly StoredDeletion[]>

type QueuedQuote = QueuedThread['quotes'][number]

/** Computes ids as the store does. */
export interface Ids {
  sourceIdOf(tenant: string, name: { service: string; externalId: string }): string
  quoteIdsOf(sourceId: string, quotes: readonly QueuedQuote[]): string[]
}

/** Returns a thread of which only the names are left. */
function onlyNames({ source: { service, externalId } }: QueuedThread): QueuedThread {
  return { source: { service, externalId, title: '' }, quotes: [], deleted: true }
}

/** Returns a payload without the threads and texts that a later deletion covers. */
function withoutWords(job: IngestJob, deletions: readonly StoredDeletion[], ids: Ids): IngestJob {
  let purged: number | undefined
  const threads = job.threads.map((thread, at) => {
    if ('deletes' in thread) return thread
    const id = ids.sourceIdOf(job.tenant, thread.source)
    return deletions
      .filter(({ tenant, sourceId }) => sourceId === id && tenant === job.tenant)
      .reduce((left, { stamp, quoteIds, redacts }) => {
        purged = Math.max(purged ?? job.purged ?? 0, stamp)
        // A payload from `createRetainLater` has no stamp.
        if ((job.stamp ?? 0) + at > stamp) return left
        if (quoteIds === undefined) return onlyNames(left)
        const kept = withoutQuotes(left, id, quoteIds, ids)
        return withoutRepeats(kept, redacts ?? 'quotes')
      }, thread)
  })
  return purged === undefined ? job : { ...job, threads, purged }
}

/**
 * Returns a thread without the texts of these quotes. The id of a quote without an externalId
 * depends on how many equal quotes come before it. So such a quote stays if an equal one stays,
 * which has the same words.
 */
function withoutQuotes(
  thread: QueuedThread,
  sourceId: string,
  deleted: readonly string[],
  { quoteIdsOf }: Ids,
): QueuedThread {
  const quoteIds = quoteIdsOf(sourceId, thread.quotes)
  const isDeleted = (at: number) => deleted.includes(quoteIds[at] ?? '')
  const kept = new Set(thread.quotes.filter((_, at) => !isDeleted(at)).map(contentOf))
  const quotes = thread.quotes.map((quote, at) => {
    const stays = !isDeleted(at) || (quote.externalId === undefined && kept.has(contentOf(quote)))
    // A quote of a suppressed speaker has no words.
    if (stays || quote.text === ERASED) return quote
    return withoutText(quote)
  })
  return { ...thread, quotes }
}

/** The source stays the first field, and its name comes first: purge.lua reads them so. */
function withoutRepeats(thread: QueuedThread, redacts: Redacts): QueuedThread {
  return { ...thread, source: withErased(redacts, thread.source) }
}

function withoutText({ externalId, exportedId }: QueuedQuote): QueuedQuote {
  const ids = {
    ...(externalId !== undefined && { externalId }),
    ...(exportedId !== undefined && { exportedId }),
  }
  return { text: '', ...ids, deleted: true }
}

/**
 * Returns the payload to retain of a job whose thread was deleted before it was stored, or of which
 * speakers are suppressed. Returns undefined for any other job: Redis has its payload.
 */
export function payloadToRetain({
  data,
  result: { receipts },
}: Pick<CompletedJob, 'data' | 'result'>): string | undefined {
  const [[thread], [receipt]] = [data.threads, receipts]
  if (!thread || 'deletes' in thread || !receipt || !('outcomes' in receipt)) return undefined
  const isDeleted = (at: number) => outcomeOf(receipt, at) === 'deleted'
  if (receipt.source.outcome === 'deleted')
    return JSON.stringify({ ...data, threads: [onlyNames(thread)] })
  const isSuppressed = (at: number) => outcomeOf(receipt, at) === 'suppressed'
  const { channelName, title } = receipt.sourceDiffers ?? {}
  const redacts = channelName === ERASED ? 'channel' : title === ERASED ? 'all' : 'quotes'
  const isChanged = thread.quotes.some((_, at) => isDeleted(at) || isSuppressed(at))
  if (redacts === 'quotes' && !isChanged) return undefined
  const quotes = thread.quotes.map((quote, at) => {
    if (isDeleted(at)) return withoutText(quote)
    return isSuppressed(at) ? { ...quote, ...REDACTED } : quote
  })
  return JSON.stringify({ ...data, threads: [{ ...withoutRepeats(thread, redacts), quotes }] })
}

/** Matches names in a result, and no text: quotation marks within a text are escaped. */
const NAMES = /"(?:speaker|channelName)":("(?:[^"\\]|\\.)*")/g
const namesIn = (result: string): string[] =>
  Array.from(result.matchAll(NAMES), ([, name = '']) => JSON.parse(name))

/** Returns a retained result without words, for the payload that is left. */
function resultWithout({ threads }: IngestJob, { receipts }: JobResult): JobResult {
  return {
    receipts: receipts.map((receipt, at) => {
      const thread = threads[at]
      if (!receipt || !thread) return null
      if (!('outcomes' in receipt) || 'deletes' in thread) return receipt
      if (thread.deleted) return receiptOfDeleted(receipt.source.createdAt)
      return receiptWithoutWords(thread, receipt)
    }),
  }
}
