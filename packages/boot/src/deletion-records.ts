// The records of deletions, which Redis and MongoDB both have: if one is restored from a backup,
// the other knows what was deleted since (docs/adr/0024-deletions.md).
import { createParser, type DeletionRecord, DeletionRecordSchema } from '@sluice/contract'
import { openScript } from '@sluice/process/redis'
import { orUnavailable, type QueueKeys } from '@sluice/queue'
import { chunksOf, NOBODY, withinTime } from '@sluice/store/read'
import type { Redis } from 'ioredis'
import type { Db, Document } from 'mongodb'

/** How long records are kept: longer than backups should be. */
const RECORDS_KEPT_MS = 400 * 24 * 60 * 60 * 1_000

/** The most records in Redis. MongoDB has the older ones, too. */
const MOST_IN_REDIS = 1_000_000
/** The most records of one command. */
const AT_ONCE = 500
const DUPLICATE = 11_000

const parse = createParser(DeletionRecordSchema)

/** Checks a record. @throws {Error} if it is none. */
export function readRecord(value: unknown): DeletionRecord {
  const parsed = parse(value)
  if (parsed.ok) return parsed.value
  throw new Error(`a record of a deletion can't be read: ${parsed.errors[0]?.message}`)
}

export type DeletionRecords = ReturnType<typeof createDeletionRecords>

/** Makes the functions that keep the records. */
export function createDeletionRecords(redis: Redis, { base }: QueueKeys, db: Db) {
  const key = `${base}deletions`
  const addRecords = openScript(redis, new URL('./deletion-records.lua', import.meta.url))
  const collection = db.collection<{ _id: string }>('deletions', { readPreference: 'primary' })

  async function writeToMongodb(records: readonly DeletionRecord[]): Promise<void> {
    const updates = records.map(({ id, ...record }) => ({
      q: { _id: id },
      u: record,
      upsert: true,
    }))
    const command = {
      update: 'deletions',
      updates,
      ordered: false,
      writeConcern: { w: 'majority' },
    }
    const { writeErrors = [] } = await withinTime(NOBODY, (signal) =>
      db.command(command, { readPreference: 'primary', signal }),
    )
    // Another worker has just written the same record.
    const refused = writeErrors.find(({ code }: Document) => code !== DUPLICATE)
    if (refused !== undefined) throw new Error(refused.errmsg)
  }
  const writeToRedis = (records: readonly DeletionRecord[]) =>
    orUnavailable(addRecords(base, RECORDS_KEPT_MS, MOST_IN_REDIS, ...records))

  async function readFromMongodb(): Promise<DeletionRecord[]> {
    const found = await collection.find().toArray()
    return found.map(({ _id: id, ...record }) => readRecord({ ...record, id }))
  }
  async function readFromRedis(): Promise<DeletionRecord[]> {
    const found: DeletionRecord[] = []
    for (let from = '-'; ; ) {
      const entries = await redis.xrange(key, from, '+', 'COUNT', AT_ONCE)
      for (const [id, [, text = '']] of entries) {
        found.push(readRecord(JSON.parse(text)))
        from = `(${id}`
      }
      if (entries.length < AT_ONCE) return found
    }
  }

  /** Reads the records of both servers, each once. */
  async function read(others: readonly DeletionRecord[] = []) {
    const [ofMongodb, ofRedis] = await Promise.all([readFromMongodb(), readFromRedis()])
    const since = (Date.now() - RECORDS_KEPT_MS) * 1_000
    const all = newestOf([...ofMongodb, ...ofRedis, ...others].filter(({ stamp }) => stamp > since))
    return { all, ofMongodb: newestOf(ofMongodb), ofRedis: newestOf(ofRedis) }
  }

  return {
    /**
     * Leaves records in both servers. Call it before anything is removed.
     * @throws {CommandFailedError | QueueUnavailableError}
     */
    async write(records: readonly DeletionRecord[]): Promise<void> {
      await Promise.all([writeToMongodb(records), writeToRedis(records)])
    },
    read: async () => [...(await read()).all.values()],
    /** Gives each server the records that only the other one or `others` has. Returns all. */
    async complete(others: readonly DeletionRecord[]): Promise<DeletionRecord[]> {
      const { all, ofMongodb, ofRedis } = await read(others)
      for (const [known, write] of [
        [ofMongodb, writeToMongodb],
        [ofRedis, writeToRedis],
      ] as const) {
        const lacks = [...all.values()].filter((one) => isNewer(one, known.get(one.id)))
        for (const some of chunksOf(lacks, AT_ONCE)) await write(some)
      }
      return [...all.values()]
    },
  }
}

/** Removes old records from MongoDB, and returns their number. Redis does so itself. */
export async function forgetRecords(db: Db): Promise<number> {
  const filter = { stamp: { $lte: (Date.now() - RECORDS_KEPT_MS) * 1_000 } }
  return (await db.collection('deletions').deleteMany(filter)).deletedCount
}

/** An operation writes its record twice. */
function newestOf(records: readonly DeletionRecord[]): Map<string, DeletionRecord> {
  const newest = new Map<string, DeletionRecord>()
  for (const record of records)
    if (isNewer(record, newest.get(record.id))) newest.set(record.id, record)
  return newest
}

function isNewer({ stamp, done }: DeletionRecord, known: DeletionRecord | undefined): boolean {
  if (known === undefined || stamp > known.stamp) return true
  return stamp === known.stamp && done !== undefined && known.done === undefined
}
