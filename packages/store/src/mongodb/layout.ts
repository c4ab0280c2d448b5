// Keeps a release from documents that it would misread or store again (docs/adr/0021-layout-of-mongodb.md).
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import type { SourceDocument } from '../documents.ts'
import { sourceIdOf } from '../ids.ts'
import { PRIMARY } from './commands.ts'

/** The layout of the documents, as a number: ADR 21 says when it rises. */
const LAYOUT = 1

/** The one document of the collection `layout`. */
type LayoutDocument = { _id: typeof ID; number: number }
const ID = 'documents'

/** The documents in MongoDB have another layout than this release reads and writes. */
export class StoreLayoutError extends Error {
  override name = 'StoreLayoutError'

  /** @param found undefined for documents that are older than layout numbers. */
  constructor(found: number | undefined) {
    const has = found === undefined ? 'no layout number, and ids that this release does not compute' : `layout ${found}`
    super(
      `The documents in MongoDB have ${has}; this release of Sluice has layout ${LAYOUT}. Start the release that stored them, ` +
        'or name an empty database in MONGODB_URL (docs/operating.md#upgrades).',
    )
  }
}

/**
 * Returns whether the database has the number of this release. Throws a `StoreLayoutError` if it has another one, or
 * none and documents that this release would not find; the driver's error if MongoDB is away.
 */
export async function checkLayout(db: Db, signal?: AbortSignal): Promise<boolean> {
  const options = { ...PRIMARY, ...(signal && { signal }) }
  const noted = await db.collection<LayoutDocument>('layout', PRIMARY).findOne({ _id: ID }, options)
  if (noted !== null && noted.number !== LAYOUT) throw new StoreLayoutError(noted.number)
  if (noted !== null) return true
  const projection = { tenant: 1, service: 1, externalId: 1 }
  const some = await db.collection<SourceDocument>('sources', PRIMARY).findOne({}, { ...options, projection })
  // A document without a tenant is not Sluice's.
  if (some?.tenant !== undefined && some._id !== sourceIdOf(some.tenant, some)) throw new StoreLayoutError(undefined)
  return false
}

/** Checks the layout as `checkLayout` does, and writes the number into a database that has none. */
export async function noteLayout(db: Db, signal: AbortSignal): Promise<void> {
  if (await checkLayout(db, signal)) return
  const documents: LayoutDocument[] = [{ _id: ID, number: LAYOUT }]
  const { writeErrors } = await db.command({ insert: 'layout', documents, writeConcern: { w: 'majority' } }, { signal })
  // Another worker was faster.
  if (writeErrors !== undefined) await checkLayout(db, signal)
}

/** A start waits no longer than this for MongoDB. */
const FIRST_MS = 1_000
const AGAIN_MS = 5_000

/**
 * Checks the layout until MongoDB has answered once. If the database has another layout, throws a `StoreLayoutError`
 * within `FIRST_MS`; later calls `onOther`, which must stop the process.
 */
export async function watchStoreLayout(db: Db, onOther: (error: StoreLayoutError) => void): Promise<void> {
  async function checkUntilAnswered(): Promise<void> {
    for (;;) {
      try {
        return void (await checkLayout(db))
      } catch (error) {
        if (error instanceof StoreLayoutError) throw error
        await delay(AGAIN_MS, undefined, { ref: false })
      }
    }
  }
  const checking = checkUntilAnswered()
  await Promise.race([checking, delay(FIRST_MS, undefined, { ref: false })])
  checking.catch(onOther)
}
