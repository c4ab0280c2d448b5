// Finds what the erasure of a speaker deletes, of stored threads and of posts that are not stored.
import { createRedactsOf, type DeletionRecord, ERASED, moreOf } from '@sluice/contract'
import { type Deletion, type IngestJob, sourceNameOf } from '@sluice/queue'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'
import { chunksOf } from '@sluice/store/read'
import { createHashOf } from '@sluice/store/suppressions'
import { type AgedThread, type FoundQuotes, findQuotes, findThreads } from '@sluice/store/walk'
import type { Db } from 'mongodb'
import { THREADS_PER_JOB } from '../threads/steps.ts'

type Erased = Pick<
  Extract<DeletionRecord, { kind: 'erasure' }>,
  'tenant' | 'service' | 'speaker' | 'key' | 'mode'
>

interface Walk {
  after?: string | undefined
  /**
   * Also finds what was redacted since (a stamp). A post of a suppressed speaker may have replaced
   * words that Redis still has in results.
   */
  since?: number
}

type Found = { deletions: Deletion[]; counts?: { threads: number; quotes: number; last: string } }

/** Threads whose deletions may share a job. */
const THREADS_AT_ONCE = { redact: 100, remove: THREADS_PER_JOB }
/** Bounds the time that a worker needs for one of the deletions of a job. */
const QUOTES_PER_DELETION = 100

/** Makes the functions that find what an erasure deletes. */
export function createFindErased({ tenant, service, speaker, key, mode }: Erased) {
  const hashOf = createHashOf(key, tenant)
  const isErased = (quote: { speaker?: string }) =>
    quote.speaker !== undefined && hashOf(quote.speaker) === speaker
  return {
    /**
     * Finds deletions in the stored threads after an id. After those of some threads come the
     * number of these threads and of their erased quotes, and the last id.
     * @throws {CommandFailedError}
     */
    async *inStore(db: Db, { after, since }: Walk = {}): AsyncGenerator<Found> {
      const isWanted = (quote: { speaker?: string; meta: { stamp: number } }) =>
        (since && quote.speaker === ERASED && quote.meta.stamp >= since) || isErased(quote)
      const of = { tenant, ...(service !== undefined && { service }) }
      for await (const found of findThreads(db, of, { after })) {
        yield { deletions: [] }
        for (const threads of chunksOf(found, THREADS_AT_ONCE[mode])) {
          const ids = threads.map(({ id }) => id)
          let quotes = 0
          for await (const page of findQuotes(db, ids, isWanted)) {
            for (const { ids } of page.values()) quotes += ids.length
            const deletions = threads.flatMap((one) => deletionsOf(one, page.get(one.id)))
            yield { deletions }
          }
          const counts = { threads: ids.length, quotes, last: ids.at(-1) ?? '' }
          yield { deletions: [], counts }
        }
      }
    },
    /** Finds deletions in a post. */
    inPost(thread: IngestJob['threads'][number]): Deletion[] {
      const name = sourceNameOf(thread)
      if ('deletes' in thread || (service ?? name.service) !== name.service) return []
      const { source, quotes } = thread
      const id = sourceIdOf(tenant, name)
      const erased = quotes.filter(isErased)
      const ids = quoteIdsOf(id, quotes).filter((_, at) => isErased(quotes[at] ?? {}))
      const redacts = erased.map(createRedactsOf(source)).reduce(moreOf, 'quotes')
      return deletionsOf({ id, name }, { ids, redacted: [], redacts })
    },
  }

  /** If the title goes with one of the quotes, it is redacted by a deletion of no quotes. */
  function deletionsOf(
    { id: sourceId, name }: Pick<AgedThread, 'id' | 'name'>,
    { ids, redacted, redacts }: FoundQuotes = { ids: [], redacted: [], redacts: 'quotes' },
  ): Deletion[] {
    const make = (some: string[], how?: 'quotes') =>
      Array.from(chunksOf(some, QUOTES_PER_DELETION), (quoteIds) => {
        return { deletes: { sourceId, quoteIds, ...(how && { redacts: how }) }, name }
      })
    const own = make(ids, mode === 'redact' ? 'quotes' : undefined)
    const some = [...own, ...make(redacted, 'quotes')]
    if (redacts === 'quotes') return some
    return [{ deletes: { sourceId, quoteIds: [], redacts }, name }, ...some]
  }
}
