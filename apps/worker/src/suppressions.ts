// This worker's copy of the list of suppressions.
//
// No post slips past a stale copy. A change of the list is answered once MongoDB has it with
// majority, and Redis then has a new random value. A job that is accepted after the answer is
// fetched after it, by a script that also returns this value. Either the copy was read after a
// fetch that returned the same value, and so after the change, or it is read again before the job
// is stored.
//
// A Redis that was promoted or restarted may have lost the value, and have the one before. So the
// copy also goes when a connection to Redis is made, before a job is fetched by it.
import type { FetchedJob } from '@sluice/queue'
import { type SuppressedIds, suppressionsOf } from '@sluice/store/suppressions'
import type { IngestRequest } from './ingest.ts'

export type SuppressionCopy = ReturnType<typeof createSuppressionCopy>

/** Makes the functions that find the suppressed speakers of jobs. */
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
