import { type Collections, collectionsOf, createBatchStore, createIndexes, type StoreRequest } from '@sluice/store'
import { requiredUrl } from '@sluice/test-support'
import { MongoClient, type MongoClientOptions } from 'mongodb'
import { afterAll, beforeAll } from 'vitest'

/** The real store in a database of the suite's own, which goes with it. To be called within `describe`. */
export function openStore(name: string, options: MongoClientOptions = {}): { client: MongoClient; store: Collections } {
  const client = new MongoClient(requiredUrl('MONGODB_URL'), options)
  const db = client.db(`${name}_${process.pid}`)
  const store = collectionsOf(db)
  beforeAll(() => createIndexes(store))
  afterAll(async () => {
    await db.dropDatabase()
    await client.close()
  })
  return { client, store }
}

/** Has requests stored by a worker of their own, which then ends in order. */
export async function storeOnce(store: Collections, requests: readonly StoreRequest[]) {
  const worker = createBatchStore(store)
  const answers = await worker.store(requests)
  await worker.close()
  return answers
}
