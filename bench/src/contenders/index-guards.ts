import { type Collection, type Db, ObjectId } from 'mongodb'
import { median } from '../percentiles.ts'

const DOCUMENTS = 5_000
const TRIES = 21
/** A server that goes by `_id` takes as long for a guarded update as for one by `_id` alone. */
const SLOW_MS = 1
const SLOWER = 3

/** Indexes what a guarded write looks for: a real MongoDB goes by `_id` and needs none. */
export async function indexGuards(collections: readonly Collection[]): Promise<void> {
  for (const collection of collections) await collection.createIndex({ _id: 1, 'meta.version': 1 }, { unique: true })
}

/** Whether this server walks the whole collection for a filter of `_id` and one more field; measured in a scratch database. */
export async function guardsNeedIndex(scratch: Db): Promise<boolean> {
  const collection = scratch.collection<{ _id: string; meta: { version: ObjectId } }>('guards')
  const version = new ObjectId()
  const ids = Array.from({ length: DOCUMENTS }, (_, at) => `document-${at}`)
  await collection.insertMany(ids.map((_id) => ({ _id, meta: { version } })))
  const last = ids.slice(-TRIES)
  const update = { $set: { updated: true } }
  const plainMs = await medianTime(last, (_id) => collection.updateOne({ _id }, update))
  const guardedMs = await medianTime(last, (_id) => collection.updateOne({ _id, 'meta.version': version }, update))
  return guardedMs > SLOW_MS && guardedMs > plainMs * SLOWER
}

async function medianTime(ids: readonly string[], act: (id: string) => Promise<unknown>): Promise<number> {
  const times = []
  for (const id of ids) {
    const began = performance.now()
    await act(id)
    times.push(performance.now() - began)
  }
  return median(times)
}
