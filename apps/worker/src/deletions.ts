// What a worker does for deletions besides storing them: it writes their record, removes the words
// of what was deleted from Redis, and knows which speakers' later posts to redact.
import type { DeletionRecords } from '@sluice/boot/deletion-records'
import type { DeletionRecord } from '@sluice/contract'
import { createGroupCommit } from '@sluice/process'
import type { Deletion, FetchedJob, Purge, Receipt } from '@sluice/queue'
import { asRefused } from '@sluice/store'
import { sourceIdOf } from '@sluice/store/ids'
import { NOBODY, type SourceReads } from '@sluice/store/read'
import { type SuppressedIds, suppressionsOf } from '@sluice/store/suppressions'
import type { IngestRequest } from './ingest.ts'

export type Deletions = ReturnType<typeof createDeletions>

/** Makes the functions for the deletions of jobs. */
export function createDeletions(
  { readSources }: Pick<SourceReads, 'readSources'>,
  { purge, writePayload }: Pick<Purge, 'purge' | 'writePayload'>,
  records: Pick<DeletionRecords, 'write'>,
) {
  // Jobs that wait share the next write.
  const write = createGroupCommit(
    async (some: DeletionRecord[]) => {
      await records.write(some).catch((error) => {
        throw asRefused(error, 'deletions', some[0]?.id ?? '')
      })
      return some.map(() => true)
    },
    (gathered) => [...gathered.slice(0, RECORDS_AT_ONCE).keys()],
  )
  return {
    /**
     * Writes the record of a job's deletions, unless an operation has written one for all its jobs.
     */
    async record({ id, data }: FetchedJob): Promise<void> {
      const { tenant, stamp, keyId, threads, recorded } = data
      if (recorded) return
      const deletes = threads.flatMap((one) => {
        if (!('deletes' in one)) return []
        const { sourceId, quoteIds } = one.deletes
        return [{ sourceId, ...(quoteIds && { quoteIds }) }]
      })
      const by = keyId === undefined ? {} : { by: keyId }
      await write({ kind: 'deletion', id, stamp, ...by, tenant, deletes })
    },
    /**
     * Writes the names of sources that are deleted by their ids into the job's payload, for the
     * purge, which finds posts by these names: once a source is deleted, nothing else has its name,
     * and the worker may die before it purges.
     */
    async name(job: FetchedJob): Promise<void> {
      const { tenant, threads } = job.data
      const nameless = threads.flatMap((one) =>
        'deletes' in one && nameIn(tenant, one) === undefined ? [one.deletes.sourceId] : [],
      )
      if (nameless.length === 0) return
      const { sources } = await readSources(tenant, nameless, NOBODY, Number.POSITIVE_INFINITY)
      if (sources.length === 0) return
      const names = new Map(
        sources.map(({ id, service, externalId }) => [id, { service, externalId }]),
      )
      const named = threads.map((one) =>
        'deletes' in one ? { ...one, name: names.get(one.deletes.sourceId) ?? one.name } : one,
      )
      await writePayload(job, { ...job.data, threads: named })
      job.data.threads = named
    },
    /** Removes the words of what these requests have deleted. */
    async purge(
      { data: { threads } }: FetchedJob,
      requests: readonly IngestRequest[],
      receipts: readonly (Receipt | null)[],
    ): Promise<void> {
      await Promise.all(
        requests.map(({ tenant, stamp }, place) => {
          const one = threads[place]
          const { source } = receipts[place] ?? {}
          if (source === undefined || one === undefined || !('deletes' in one)) return undefined
          // Retention deleted nothing: the thread has a later post.
          if (one.deletes.until !== undefined && source.outcome === 'absent') return undefined
          return purge({ tenant, stamp, ...one.deletes, name: nameIn(tenant, one) })
        }),
      )
    },
  }
}

/** The most records of one write: each may name all quotes of a thread. */
const RECORDS_AT_ONCE = 50

/** Returns the name of a deletion's source, unless the caller has given only the source's id. */
function nameIn(tenant: string, { name, deletes }: Deletion): Deletion['name'] | undefined {
  return sourceIdOf(tenant, name) === deletes.sourceId ? name : undefined
}

export type SuppressionCopy = ReturnType<typeof createSuppressionCopy>

/**
 * Makes the functions that find the suppressed speakers of jobs, by this worker's copy of the list
 * of suppressions.
 *
 * No post slips past a stale copy. A change of the list is answered once MongoDB has it with
 * majority, and Redis then has a new random value. A job that is accepted after the answer is
 * fetched after it, by a script that also returns this value. Either the copy was read after a
 * fetch that returned the same value, and so after the change, or it is read again before the job
 * is stored.
 *
 * A Redis that was promoted or restarted may have lost the value, and have the one before. So the
 * copy also goes when a connection to Redis is made, before a job is fetched by it.
 */
export function createSuppressionCopy(readList: () => Promise<SuppressedIds>) {
  let copy: { state: string; list: SuppressedIds | Promise<SuppressedIds> } | undefined

  function listAt(state: string): SuppressedIds | Promise<SuppressedIds> {
    if (copy?.state === state) return copy.list
    const list = readList()
    const read: NonNullable<typeof copy> = { state, list }
    copy = read
    list.then(
      (known) => {
        read.list = known
      },
      () => {
        if (copy === read) copy = undefined
      },
    )
    return list
  }

  return {
    /** Has the next job read the list again. */
    forget(): void {
      copy = undefined
    },
    /**
     * Adds the tenant's suppressions to the requests of a job. Returns a promise only if the list
     * must be read first. @throws {CommandFailedError}
     */
    mark(job: FetchedJob, requests: IngestRequest[]): IngestRequest[] | Promise<IngestRequest[]> {
      const list = listAt(job.suppressions)
      return list instanceof Promise
        ? list.then((known) => withSuppressions(known, job, requests))
        : withSuppressions(list, job, requests)
    },
  }
}

function withSuppressions(
  list: SuppressedIds,
  job: FetchedJob,
  requests: IngestRequest[],
): IngestRequest[] {
  const suppressions = suppressionsOf(list, job.data.tenant)
  if (suppressions === undefined) return requests
  return requests.map((request) => ({ ...request, suppressions }))
}
