import { readFile } from 'node:fs/promises'
import { Redis } from 'ioredis'
import { BSON, MongoClient } from 'mongodb'
import type { Bench } from '../bench.ts'

/**
 * Where a thread's bytes pass or stay. HTTP counts with its heads; `Redis file` is what Redis
 * appends to its file.
 */
export const PLACES = [
  'callers to API',
  'API to callers',
  'to Redis',
  'from Redis',
  'Redis file',
  'to MongoDB',
  'from MongoDB',
] as const

/** Bytes, by where they pass. */
export type Bytes = Readonly<Record<(typeof PLACES)[number], number>>

/**
 * Reads how many bytes passed so far. A MongoDB counts its own; of the emulator in memory, and of
 * callers and Redis's file, Linux counts what their processes read and write (but not by `recv` and
 * `send`). Throws if they run on another machine or system.
 */
export async function readBytes({ redisUrl, mongodbUrl, surroundings }: Bench): Promise<Bytes> {
  const ioOf = (wanted: string) => {
    const found = surroundings.find(({ name }) => name === wanted)
    if (found === undefined) throw new Error(`${wanted} does not run on this machine`)
    return readIo(found.pid)
  }
  const [load, mongodb, redis] = await Promise.all([ioOf('load'), ioOf('mongodb'), ioOf('redis')])
  const client = new MongoClient(mongodbUrl)
  const status = client.db().admin().command({ serverStatus: 1 })
  const { network } = await status
    .catch(() => ({ network: undefined }))
    .finally(() => client.close())
  const connection = new Redis(redisUrl)
  const info = await connection.info('stats').finally(() => connection.disconnect())
  const count = (field: string) => Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(info)?.[1])
  return {
    'callers to API': load.written,
    'API to callers': load.read,
    'to Redis': count('total_net_input_bytes'),
    'from Redis': count('total_net_output_bytes'),
    'Redis file': redis.written - count('total_net_output_bytes'),
    'to MongoDB': network?.bytesIn ?? mongodb.read,
    'from MongoDB': network?.bytesOut ?? mongodb.written,
  }
}

/** The bytes of a source with its quotes as BSON: the mean of a database. */
export async function storedBytes(mongodbUrl: string): Promise<number> {
  const client = new MongoClient(mongodbUrl)
  try {
    let bytes = 0
    for (const name of ['sources', 'quotes'])
      for await (const document of client.db().collection(name).find())
        bytes += BSON.calculateObjectSize(document)
    return bytes / (await client.db().collection('sources').countDocuments())
  } finally {
    await client.close()
  }
}

/** What a process has read and written so far, on sockets and in files. */
async function readIo(pid: number): Promise<{ read: number; written: number }> {
  const text = await readFile(`/proc/${pid}/io`, 'utf8')
  const count = (field: string) => Number(new RegExp(`^${field}: (\\d+)`, 'm').exec(text)?.[1])
  return { read: count('rchar'), written: count('wchar') }
}
