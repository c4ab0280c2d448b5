import { MongoClient } from 'mongodb'
import type { Bench } from '../bench.ts'
import { documentsOf, type PeerDocument } from '../peers/documents.ts'
import { isThread } from '../peers/thread-check.ts'
import { percentiles } from '../percentiles.ts'
import type { MadeThread } from '../threads.ts'
import type { Contender } from './contender.ts'
import { databaseUrl, dropDatabase } from './database.ts'

const BATCH = 1_000

/**
 * The limit: `insertMany` of the same documents in batches of 1,000, one after the other, from this
 * process. Its times are times of batches.
 *
 * @param indexesOf a database whose indexes the documents get, too. On some servers, Sluice needs
 * an index of quotes that costs more than the documents.
 */
export async function openRawInserts(
  bench: Bench,
  { name = 'raw', indexesOf }: { name?: string; indexesOf?: string } = {},
): Promise<Contender> {
  const url = databaseUrl(bench.mongodbUrl, `${bench.run}-${name}`)
  const client = new MongoClient(url, { ignoreUndefined: true, writeConcern: { w: 'majority' } })
  for (const name of indexesOf === undefined ? [] : ['sources', 'quotes']) {
    const indexes = await client.db(indexesOf).collection(name).indexes()
    const added = indexes.filter(({ key }) => !('_id' in key))
    if (added.length > 0) await client.db().command({ createIndexes: name, indexes: added })
  }
  return {
    name,
    processes: [],
    async run(threads) {
      const documents = documentsToInsert(threads)
      const times: number[] = []
      for (const { collection, batch } of documents) {
        const began = performance.now()
        await client.db().collection<{ _id: string }>(collection).insertMany(batch)
        times.push(performance.now() - began)
      }
      const seconds = times.reduce((sum, time) => sum + time, 0) / 1000
      const inserted = new Set(threads).size
      return { threads: inserted, rate: inserted / seconds, ...percentiles(times), failed: 0 }
    },
    async [Symbol.asyncDispose]() {
      await client.close()
      await dropDatabase(bench, url)
    },
  }
}

/** Each document once: an insert of a repost would be refused. */
function documentsToInsert(threads: readonly MadeThread[]) {
  const sources: PeerDocument[] = []
  const quotes: PeerDocument[] = []
  for (const { body } of new Set(threads)) {
    const thread: unknown = JSON.parse(body.toString())
    if (!isThread(thread)) throw new Error('A made thread is not valid')
    const documents = documentsOf(thread)
    sources.push(documents.source)
    quotes.push(...documents.quotes)
  }
  return [...batchesOf('sources', sources), ...batchesOf('quotes', quotes)]
}

function batchesOf(collection: string, documents: readonly PeerDocument[]) {
  const inserted = documents.map(({ _id, fields }) => ({ _id, ...fields }))
  return Array.from({ length: Math.ceil(inserted.length / BATCH) }, (_, at) => ({
    collection,
    batch: inserted.slice(at * BATCH, (at + 1) * BATCH),
  }))
}
