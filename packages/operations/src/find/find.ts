// Looks up a thread or an id for people, over all tenants: among the jobs in the queue, the
// recently completed jobs, the imports, and the stored threads. The queue has no index for this, so
// accepting jobs does not become slower.
import type { FindAnswer, FindQuery, Hit } from '@sluice/contract'
import { HITS_SHOWN } from '@sluice/contract'
import type { QueueKeys } from '@sluice/queue'
import { createImports, idsOfThread, isJobId, orUnavailable } from '@sluice/queue'
import type { Redis } from 'ioredis'
import type { FailedJobs } from '../failed/failed-jobs.ts'
import { SHOWN_REASON } from '../failed/reasons.ts'
import { createScanRecent, NEWEST } from '../jobs/list-jobs.ts'
import { createReadJob } from '../jobs/read-job.ts'

/** Looks up stored threads. `notes` say what the result leaves out. */
export type FindStored = (
  query: FindQuery,
  signal: AbortSignal,
) => Promise<Pick<FindAnswer, 'hits' | 'notes'>>

const FAILED_SHOWN = 100
/**
 * Matching this many ids blocks Redis for about 0.7 ms. With fewer, a look-up needs many round
 * trips.
 */
const IDS_AT_ONCE = 2_500
const MORE_FAILED = 'Not all failed jobs were examined: add filters.'

/** Makes the function that looks up an externalId or an id. */
export function createFind(
  redis: Redis,
  keys: QueueKeys,
  failedJobs: Pick<FailedJobs, 'list'>,
  findStored: FindStored,
) {
  const imports = createImports(redis, keys)
  const { readInQueue, readRetained } = createReadJob(redis, keys)
  const scanRecent = createScanRecent(redis, keys)
  let previous: Promise<unknown> = Promise.resolve()

  /**
   * Returns each hit once, but a job that moves during the look-up may be found once in each state.
   * In a process, only one look-up at a time scans Redis, so that they do not block Redis together.
   * Rejects with the signal's reason when the signal aborts.
   *
   * @throws {QueueUnavailableError}
   */
  return async function find(query: FindQuery, signal: AbortSignal): Promise<FindAnswer> {
    const scan = previous.then(() => orUnavailable(findInQueue(query, signal)))
    previous = scan.catch(() => {})
    const isWhole = query.reason === undefined
    const [queue, stored] = await Promise.all([
      scan,
      isWhole ? findStored(query, signal) : { hits: [], notes: [] },
    ])
    signal.throwIfAborted()
    const all = [...queue.hits, ...stored.hits]
    const hits = [...new Map(all.map((hit) => [`${hit.state}/${hit.id}`, hit])).values()]
    const more = hits.length > HITS_SHOWN
    return { hits: hits.slice(0, HITS_SHOWN), more, notes: [...queue.notes, ...stored.notes] }
  }

  /**
   * Searches the states in the order in which jobs pass them, so that a job that moves during the
   * search is found.
   */
  async function findInQueue(
    query: FindQuery,
    signal: AbortSignal,
  ): Promise<Pick<FindAnswer, 'hits' | 'notes'>> {
    const { q, ...filter } = query
    const isWhole = query.reason === undefined
    const hits = isWhole ? [...(await findById(query)), ...(await findInLoad(query, signal))] : []
    const failed = await failedJobs.list({
      filter: { ...filter, externalId: q },
      limit: FAILED_SHOWN,
    })
    for (const { id } of failed.jobs) hits.push(...(await hitsOf(id)))
    if (isWhole) hits.push(...(await findRecent(query, signal)))
    return { hits, notes: failed.next === undefined ? [] : [MORE_FAILED] }
  }

  async function findById(query: FindQuery): Promise<Hit[]> {
    const { q: id } = query
    if (!isJobId(id)) return []
    const hits = await hitsOf(id)
    const retained = await readRetained(id)
    if (retained !== undefined) hits.push(retained.hit)
    const found = await imports.find(id)
    if (found !== undefined) {
      const { tenant, by, received } = found
      hits.push({ kind: 'import', id, tenant, threads: received, ...(by && { keyId: by }) })
    }
    return hits.filter((hit) => isOf(hit, query))
  }

  /**
   * Finds waiting and active jobs by the externalId of their first thread, which Redis matches
   * against their ids.
   */
  async function findInLoad(query: FindQuery, signal: AbortSignal): Promise<Hit[]> {
    const pattern = idsOfThread(query.q)
    const hits: Hit[] = []
    let cursor = '0'
    do {
      const [next, found] = await redis.hscan(
        `${keys.base}load:jobs`,
        cursor,
        'MATCH',
        pattern,
        'COUNT',
        IDS_AT_ONCE,
      )
      cursor = next
      // Each id is followed by what the job adds to the load.
      for (const id of found.filter(isJobId))
        hits.push(...(await hitsOf(id)).filter((hit) => isOf(hit, query)))
    } while (cursor !== '0' && hits.length <= HITS_SHOWN && !signal.aborted)
    return hits
  }

  async function findRecent(query: FindQuery, signal: AbortSignal): Promise<Hit[]> {
    const hits: Hit[] = []
    for (let after = NEWEST; after !== '' && hits.length <= HITS_SHOWN && !signal.aborted; ) {
      const recent = await scanRecent(after, query.q, HITS_SHOWN)
      after = recent.next
      hits.push(...recent.hits.filter((hit) => isOf(hit, query)))
    }
    return hits
  }

  /** Returns a hit for a job in its present state. If both lanes have the job, returns two. */
  async function hitsOf(id: string): Promise<Hit[]> {
    return (await readInQueue(id)).map(({ hit }) => ({
      ...hit,
      ...(hit.reason && { reason: hit.reason.slice(0, SHOWN_REASON) }),
    }))
  }
}

/**
 * Returns whether a hit belongs to the query's tenant, and matches by its name or, if the query has
 * no service, by an id.
 */
function isOf(
  { id, tenant, name = '', requestId, keyId = '', importId }: Hit,
  query: FindQuery,
): boolean {
  if (query.tenant !== undefined && query.tenant !== tenant) return false
  return (
    isNamed(name, query) ||
    (query.service === undefined && [id, requestId, keyId, importId].includes(query.q))
  )
}

/**
 * Returns whether a name matches. The name of a job with several threads has only its first and its
 * last thread.
 */
function isNamed(name: string, { q, service }: FindQuery): boolean {
  const names = [name, ...name.replace(/ \(\d+\)$/, '').split(' … ')]
  return names.some((one) =>
    service === undefined ? one.slice(one.indexOf('/') + 1) === q : one === `${service}/${q}`,
  )
}
