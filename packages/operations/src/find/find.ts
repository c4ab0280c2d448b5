// Searches everything that Sluice has for a text: waiting, active and failed jobs, those that completed last, and what
// is stored. The queue has no index for searches, so that only a search itself costs anything.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { FindLine, FindQuery, FoundState, Hit, Searched } from '@sluice/contract'
import { HITS_PER_SEARCH, wantedOf } from '@sluice/contract'
import { traceIdOf } from '@sluice/process'
import { asList, openScript, type Script } from '@sluice/process/redis'
import type { QueueKeys } from '@sluice/queue'
import {
  createImports,
  createResults,
  type IngestJob,
  isJobId,
  LANES,
  type Lane,
  orUnavailable,
  readJob,
  readRecent,
  triesShown,
} from '@sluice/queue'
import type { Redis } from 'ioredis'

/** Searches what is stored. `note` says what was left out. */
export type FindStored = (query: FindQuery, signal: AbortSignal) => Promise<{ hits: readonly Hit[]; note?: string }>

/** This process already runs `SEARCHES_AT_ONCE` searches. */
export class SearchesFullError extends Error {}

/** The most searches of one process at a time. One of them scans Redis; the others wait for it. */
const SEARCHES_AT_ONCE = 4

/** The pause after each step, about two steps long: a search of a million threads at most doubles the p99 of posts. */
const PAUSE_MS = 2
/** While another search has the lease, this one tries again after this time. */
const BUSY_MS = 100
/** How often a search reports how much it has examined. */
const SAY_MS = 250
/** The most jobs that one call examines of those whose payloads earlier calls had no room for. */
const LEFT_AT_ONCE = 100
const SHOWN_REASON = 500

/** A search under way. */
interface Search extends FindQuery, ReturnType<typeof wantedOf> {
  /** Returns whether hits in one of these states are wanted. */
  wants: (...states: FoundState[]) => boolean
  /** Compares an externalId with the text. */
  matches: (externalId?: string) => boolean | undefined
  /** Runs a script once no other search has the lease, then pauses. @throws {QueueUnavailableError} */
  step: (script: Script, ...args: string[]) => Promise<readonly unknown[]>
}

/** Makes the function that searches. */
export function createFind(redis: Redis, keys: QueueKeys, findStored: FindStored) {
  const { findRetained } = createResults(redis, keys)
  const imports = createImports(redis, keys)
  const scanJobs = openScript(redis, new URL('./find.lua', import.meta.url))
  const scanRecent = openScript(redis, new URL('./find-recent.lua', import.meta.url))
  const release = openScript(redis, new URL('./search-lease.lua#release', import.meta.url))
  let searches = 0

  /**
   * Yields hits as they are found (each job and document once in each state), then and again how much was searched, and
   * the end. One search at a time scans Redis, over all processes; others wait.
   *
   * @throws {QueueUnavailableError | SearchesFullError}, and the signal's reason once it aborts.
   */
  return async function* find(query: FindQuery, signal: AbortSignal): AsyncGenerator<FindLine> {
    if (searches === SEARCHES_AT_ONCE) throw new SearchesFullError()
    searches += 1
    const seen = new Set<string>()
    const token = randomUUID()
    const only = query.state ?? (query.reason === undefined ? undefined : 'failed')
    const { text, isPrefix } = wantedOf(query)
    const search: Search = {
      ...query,
      text,
      isPrefix,
      matches: (externalId) => (isPrefix ? externalId?.startsWith(text) : externalId === text),
      wants: (...states) => only === undefined || states.includes(only),
      async step(script, ...args) {
        for (;;) {
          signal.throwIfAborted()
          const reply = await orUnavailable(script(keys.base, token, ...args))
          const isBusy = reply === 'busy'
          await delay(isBusy ? BUSY_MS : PAUSE_MS, undefined, { signal })
          if (!isBusy) return asList(reply)
        }
      },
    }
    try {
      for await (const line of run(search, signal)) {
        if ('hit' in line) {
          const name = `${line.hit.state}/${line.hit.id}`
          if (seen.has(name)) continue
          if (seen.size === HITS_PER_SEARCH) break
          seen.add(name)
        }
        yield line
      }
      yield { end: { hits: seen.size, more: seen.size === HITS_PER_SEARCH } }
    } finally {
      searches -= 1
      await release(keys.base, token).catch(() => {})
    }
  }

  async function* run(search: Search, signal: AbortSignal): AsyncGenerator<FindLine> {
    const { wants } = search
    const stored = wants('stored') ? findStored(search, signal) : undefined
    stored?.catch(() => {}) // awaited below
    if (isJobId(search.text)) yield* byId(search)
    if (wants('waiting', 'active')) {
      yield* scan('names', search)
      yield* scan('payloads', search)
    }
    // Failed and completed jobs come last: a job that ends during the search is found there.
    if (wants('failed')) for (const lane of LANES) yield* scan(lane, search)
    if (wants('completed')) yield* completed(search)
    if (stored === undefined) return
    const { hits, note } = await stored
    for (const hit of hits) yield { hit }
    yield { searched: { in: 'stored', examined: hits.length, isComplete: true, ...(note !== undefined && { note }) } }
  }

  /** Looks up a job and an import by their id. */
  async function* byId(search: Search): AsyncGenerator<FindLine> {
    const { text: id, tenant, state } = search
    for (const lane of LANES) yield* describe(id, lane, search)
    const retained = search.wants('completed') ? await orUnavailable(findRetained(id)) : undefined
    if (retained !== undefined) {
      const hit = hitOf(id, JSON.parse(retained.data), search)
      const facts = { attempts: retained.attempts, endedAt: new Date(retained.at).toISOString() }
      if (hit) yield { hit: { ...hit, state: 'completed', ...facts } }
    }
    const found = await orUnavailable(imports.find(id))
    if (found === undefined || (tenant !== undefined && tenant !== found.tenant)) return
    if (state === undefined) yield { hit: { kind: 'import', id, tenant: found.tenant, threads: found.received } }
  }

  /** Examines a set of jobs step by step. */
  async function* scan(set: 'names' | 'payloads' | Lane, search: Search): AsyncGenerator<FindLine> {
    const { text, isPrefix, tenant = '', reason = '' } = search
    const { interactive, bulk } = keys.jobs
    const isLane = set === 'interactive' || set === 'bulk'
    const wanted = [tenant, reason, text, inJson(text), isPrefix ? '' : '"']
    const say = createProgress(isLane ? 'failed' : set)
    let left: unknown[] = []
    for (let cursor = '0', isLast = false; !isLast; ) {
      const now = left.splice(0, LEFT_AT_ONCE).flatMap((job) => asList(job).map(String))
      const from = now.length > 0 ? '' : cursor
      const args = [isLane ? keys.jobs[set] : set, from, interactive, bulk, ...wanted, ...now]
      const [next, count, found, more] = await search.step(scanJobs, ...args)
      left = [...left, ...asList(more)]
      if (from !== '') cursor = String(next)
      isLast = cursor === '0' && left.length === 0
      for (const [id, lane] of asList(found).map(asList))
        yield* describe(String(id), lane === interactive ? 'interactive' : 'bulk', search)
      yield* say(Number(count), isLast)
    }
  }

  async function* completed(search: Search): AsyncGenerator<FindLine> {
    const say = createProgress('completed')
    for (let after = '+'; after !== ''; ) {
      const [next, count, found] = await search.step(scanRecent, after, inJson(search.text))
      after = String(next)
      for (const [entry, line] of asList(found).map(asList)) {
        const hit = readRecent(String(entry), String(line))
        if (recentMatches(hit, search)) yield { hit }
      }
      yield* say(Number(count), after === '')
    }
  }

  /** Yields the job as it is now if it matches. A job that completed meanwhile is found among the completed ones. */
  async function* describe(id: string, lane: Lane, search: Search): AsyncGenerator<FindLine> {
    const job = await orUnavailable(readJob(redis, keys.jobs[lane], id))
    if (job === undefined) return
    const { data, enqueuedAt, failedAt, reason, tries, isActive } = job
    const state = failedAt !== undefined ? 'failed' : isActive ? 'active' : 'waiting'
    const hit = search.wants(state) && hitOf(id, JSON.parse(data), search)
    if (!hit || !lowerAscii(reason).includes(lowerAscii(search.reason ?? ''))) return
    const facts = {
      state,
      lane,
      acceptedAt: new Date(enqueuedAt).toISOString(),
      attempts: triesShown(tries),
      ...(failedAt !== undefined && { endedAt: new Date(failedAt).toISOString() }),
      ...(reason !== '' && { reason: reason.slice(0, SHOWN_REASON) }),
    } as const
    yield { hit: { ...hit, ...facts } }
  }
}

/** Lowers ASCII letters only, as Lua's `string.lower` does. */
function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase())
}

/** A text as it stands in a JSON string. */
function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** Makes a function that counts examined jobs, and yields their number every `SAY_MS` and at the end. */
function createProgress(place: Searched['in']) {
  let examined = 0
  let saidAt = performance.now()
  return function* say(count: number, isComplete: boolean): Generator<FindLine> {
    examined += count
    if (!isComplete && performance.now() - saidAt < SAY_MS) return
    saidAt = performance.now()
    yield { searched: { in: place, examined, isComplete } }
  }
}

/** Describes a job by its first thread that matches, or as a whole if its id, request or import matches. */
function hitOf(id: string, job: IngestJob, wanted: Search): Hit | undefined {
  const { tenant, requestId, threads, import: of, trace } = job
  const { text, isPrefix, service, matches } = wanted
  if (wanted.tenant !== undefined && wanted.tenant !== tenant) return undefined
  const ids = { requestId, ...(of && { importId: of.id }), ...(trace && { traceId: traceIdOf(trace) }) }
  const about = { kind: 'job', id, tenant, threads: threads.length, ...ids } as const
  for (const [place, { source, quotes }] of threads.entries()) {
    if (service !== undefined && service !== source.service) continue
    const name = `${source.service}/${source.externalId}`
    if (!isPrefix && [id, requestId, of?.id].includes(text)) return { ...about, name }
    if (matches(source.externalId)) return { ...about, name, place }
    const quote = quotes.find(({ externalId }) => matches(externalId))?.externalId
    if (quote !== undefined) return { ...about, name, place, quote }
  }
  return undefined
}

/** Returns whether a completed job matches. The name of a job with several threads has only the first and the last. */
function recentMatches({ id, tenant, name = '', requestId, importId }: Hit, wanted: Search): boolean {
  const { text, isPrefix, service, matches } = wanted
  if (wanted.tenant !== undefined && wanted.tenant !== tenant) return false
  if (service !== undefined && !name.startsWith(`${service}/`)) return false
  if (!isPrefix && [id, requestId, importId].includes(text)) return true
  const names = [name, ...name.replace(/ \(\d+\)$/, '').split(' … ')]
  return names.some((one) => matches(one.slice(one.indexOf('/') + 1)))
}
