import { type Collection, type Db, ObjectId } from 'mongodb'
import { median } from '../percentiles.ts'

interface Guarded {
  _id: string
  meta: { version: ObjectId }
}

const DOCUMENTS = 5_000
/** Updates per command, enough to outweigh the round trip, and commands; the median counts. */
const UPDATES = 50
const COMMANDS = 5
/** A server that uses the index on `_id` takes about as long for a guarded update as for one by `_id` alone; a collection scan takes twenty times as long. */
const SLOWER = 3

/**
 * Indexes the filters of guarded writes; a real MongoDB uses `_id` and needs no such index. Sources only, because no scenario changes
 * a stored quote, and an index would slow down every quote.
 */
export async function indexGuards(sources: Collection): Promise<void> {
  await sources.createIndex({ _id: 1, 'meta.version': 1 }, { unique: true })
}

/** Whether this server scans the whole collection for a filter on `_id` and one more field; measured in a scratch database. */
export async function guardsNeedIndex(scratch: Db): Promise<boolean> {
  const collection = scratch.collection<Guarded>('guards')
  const version = new ObjectId()
  const ids = Array.from({ length: DOCUMENTS }, (_, at) => `document-${at}`)
  await collection.insertMany(ids.map((_id) => ({ _id, meta: { version } })))
  const last = ids.slice(-UPDATES)
  const plain = last.map((_id) => ({ _id }))
  const guarded = last.map((_id) => ({ _id, 'meta.version': version }))
  // The first commands of a server in Java are slow.
  await timeOf(collection, plain)
  const plainMs = await timeOf(collection, plain)
  const guardedMs = await timeOf(collection, guarded)
  return guardedMs > plainMs * SLOWER
}

async function timeOf(collection: Collection<Guarded>, filters: readonly { _id: string }[]): Promise<number> {
  const times = []
  for (let command = 0; command < COMMANDS; command++) {
    const updates = filters.map((filter) => ({ updateOne: { filter, update: { $set: { command } } } }))
    const began = performance.now()
    await collection.bulkWrite(updates, { ordered: false })
    times.push(performance.now() - began)
  }
  return median(times)
}
