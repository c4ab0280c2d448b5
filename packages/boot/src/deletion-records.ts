// The records of deletions, which Redis and MongoDB both have: if one is restored from a backup,
// the other knows what was deleted since (docs/adr/0024-deletions.md).
import { createParser, type DeletionRecord, DeletionRecordSchema } from '@sluice/contract'
import { openScript } from '@sluice/process/redis'
import { orUnavailable, type QueueKeys } from '@sluice/queue'
import { NOBODY, withinTime } from '@sluice/store/read'
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

  /** Reads the records from MongoDB. It has all of them after `complete`. */
  async function* stored(filter: Document = {}): AsyncGenerator<DeletionRecord> {
    const kept = { ...filter, stamp: { $gt: oldestStamp() } }
    for await (const { _id: id, ...record } of collection.find(kept, { batchSize: AT_ONCE }))
      yield readRecord({ ...record, id })
  }
  async function* readFromRedis(): AsyncGenerator<DeletionRecord> {
    for (let from = '-'; ; ) {
      const entries = await redis.xrange(key, from, '+', 'COUNT', AT_ONCE)
      for (const [id, [, text = '']] of entries) {
        yield readRecord(JSON.parse(text))
        from = `(${id}`
      }
      if (entries.length < AT_ONCE) return
    }
  }

  return {
    /**
     * Writes records to both servers. Call it before anything is removed.
     * @throws {CommandFailedError | QueueUnavailableError}
     */
    async write(records: readonly DeletionRecord[]): Promise<void> {
      await Promise.all([writeToMongodb(records), writeToRedis(records)])
    },
    stored,
    /**
     * Gives each server the records that only the other one or `others` has, and returns the number
     * of all.
     */
    async complete(others: AsyncIterable<DeletionRecord> | DeletionRecord[] = []): Promise<number> {
      const [inMongodb, inRedis] = [new Map<string, number>(), new Map<string, number>()]
      for await (const page of pagesOf(stored())) takeNewer(page, inMongodb)
      for (const records of [others, readFromRedis()])
        for await (const page of pagesOf(records)) {
          if (records !== others) takeNewer(page, inRedis)
          const lacks = takeNewer(page, inMongodb)
          if (lacks.length > 0) await writeToMongodb(lacks)
        }
      for await (const page of pagesOf(stored())) {
        const lacks = takeNewer(page, inRedis)
        if (lacks.length > 0) await writeToRedis(lacks)
      }
      return inMongodb.size
    },
  }
}

const oldestStamp = () => (Date.now() - RECORDS_KEPT_MS) * 1_000

/** Reads in pages, without old records: a million of them would take 1 GB of memory. */
async function* pagesOf(
  records: AsyncIterable<DeletionRecord> | DeletionRecord[],
): AsyncGenerator<DeletionRecord[]> {
  let page: DeletionRecord[] = []
  for await (const record of records) {
    if (record.stamp > oldestStamp()) page.push(record)
    if (page.length < AT_ONCE) continue
    yield page
    page = []
  }
  yield page
}

/** Returns the records that `known` has in an older version or not at all, and adds them to it. */
function takeNewer(page: readonly DeletionRecord[], known: Map<string, number>): DeletionRecord[] {
  const newer = new Map<string, DeletionRecord>()
  for (const record of page) {
    const { id, stamp, done } = record
    // A number, not an object, because there may be millions.
    const version = done === undefined ? stamp : stamp + 0.5
    if (version <= (known.get(id) ?? 0)) continue
    known.set(id, version)
    newer.set(id, record)
  }
  return [...newer.values()]
}

/** Removes old records from MongoDB, and returns their number. Redis does so itself. */
export async function forgetRecords(db: Db): Promise<number> {
  const filter = { stamp: { $lte: oldestStamp() } }
  return (await db.collection('deletions').deleteMany(filter)).deletedCount
}
