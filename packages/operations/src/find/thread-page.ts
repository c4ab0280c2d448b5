// Reads a page of a stored thread for people, over all tenants, with the requests that wrote the
// thread. Never writes.
import type { PageQuery, SourcePage } from '@sluice/contract'
import { quotesOf } from '@sluice/store/ids'
import {
  createSourceReads,
  findUnfinished,
  type SourceDocument,
  seenFilter,
  withinTime,
} from '@sluice/store/read'
import type { Db } from 'mongodb'

const META = { 'meta.insertedBy': 1, 'meta.changedBy': 1 } as const

/**
 * The effect of a request on the quotes of a source: how many it inserted, and how many it was the
 * last to change.
 */
export interface Writing {
  /** The job's id, or `ID.PLACE` if the job has several threads. */
  request: string
  inserted: number
  changed: number
  /** Whether the request created the source, or was the last to change it. */
  source?: 'created' | 'changed'
}

/** A page of a stored thread, and the requests that wrote the thread, newest first. */
export interface ThreadPage extends SourcePage {
  writings: Writing[]
  /** A write that should have ended by now: a part of the thread is not stored. */
  unfinished?: { request: string; since: string }
}

/**
 * At most this number of pairs (inserting request, changing request) is read, those with the newest
 * inserting requests first.
 */
const PAIRS = 1_000

/**
 * Makes a function that reads a page of a stored thread, with the requests that wrote it, the
 * newest first.
 */
export function createReadThread(db: Db) {
  const { readSource } = createSourceReads(db)

  async function readWritings(
    tenant: string,
    id: string,
    signal: AbortSignal,
  ): Promise<Pick<ThreadPage, 'writings' | 'unfinished'>> {
    const writings = new Map<string, Writing>()
    const of = (request: string) => {
      const writing = writings.get(request) ?? { request, inserted: 0, changed: 0 }
      writings.set(request, writing)
      return writing
    }
    const projection = { ...META, 'meta.tokens': 1, 'meta.deletion': 1 }
    const source = await db
      .collection<SourceDocument>('sources')
      .findOne({ _id: id, tenant }, { projection, signal })
    if (source === null) return { writings: [] }
    const pairs = db
      .collection('quotes')
      .aggregate<{ _id: { by: string; changedBy?: string }; quotes: number }>(
        [
          { $match: { ...quotesOf(id), ...seenFilter([source]) } },
          {
            $group: {
              _id: { by: '$meta.insertedBy', changedBy: '$meta.changedBy' },
              quotes: { $sum: 1 },
            },
          },
          { $sort: { _id: -1 } },
          { $limit: PAIRS },
        ],
        { signal, allowDiskUse: true },
      )
    for await (const { _id, quotes } of pairs) {
      of(_id.by).inserted += quotes
      if (_id.changedBy != null) of(_id.changedBy).changed += quotes
    }
    if (source.meta.changedBy !== undefined) of(source.meta.changedBy).source = 'changed'
    of(source.meta.insertedBy).source = 'created'
    const open = await findUnfinished(db, source.meta.tokens ?? [], signal)
    return {
      writings: [...writings.values()].sort((one, other) => (one.request < other.request ? 1 : -1)),
      ...(open && { unfinished: { request: open.request, since: open.since.toISOString() } }),
    }
  }

  /**
   * Returns undefined if the thread is not stored.
   * @throws {CommandFailedError}
   */
  return async (
    tenant: string,
    id: string,
    query: PageQuery,
    gone: AbortSignal,
  ): Promise<ThreadPage | undefined> => {
    const page = await readSource(tenant, id, query, gone)
    return (
      page && { ...page, ...(await withinTime(gone, (signal) => readWritings(tenant, id, signal))) }
    )
  }
}
