// The thread of the external sort: SQLite sorts, and its calls block.
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { crc32 } from 'node:zlib'
import type { SortedRecord, SortRequest } from './external-sort.ts'

const RECORDS_PER_LIST = 256

/** Nothing interrupts the sort of a bucket: 30 ms if all records have 700 MB, and longer in proportion. */
const BUCKETS = Array.from({ length: 256 }, (_, number) => `bucket${number}`)

// A database without a name lies in a temporary file, which is removed as soon as it is open.
const db = new DatabaseSync('')
db.exec(`
  PRAGMA temp_store_directory = '${workerData.folder.replaceAll("'", "''")}';
  PRAGMA journal_mode = OFF;
  PRAGMA page_size = 16384;
  PRAGMA cache_size = -16384;
  BEGIN;
  ${BUCKETS.map((bucket) => `CREATE TABLE ${bucket} (key TEXT, place TEXT, text TEXT);`).join('')}
`)
const inserts = BUCKETS.map((bucket) => db.prepare(`INSERT INTO ${bucket} VALUES (?, ?, ?)`))

function* sortedLists(): Generator<SortedRecord[], undefined> {
  let list: SortedRecord[] = []
  for (const bucket of BUCKETS) {
    for (const row of db.prepare(`SELECT key, text FROM ${bucket} ORDER BY key, place, rowid`).iterate()) {
      list.push({ key: String(row.key), text: String(row.text) })
      if (list.length < RECORDS_PER_LIST) continue
      yield list
      list = []
    }
  }
  yield list
}

const lists = sortedLists()

parentPort?.on('message', (request: SortRequest) => {
  if (request === 'next') return parentPort?.postMessage(lists.next().value ?? [])
  for (const { key, order, text } of request) inserts[crc32(key) % BUCKETS.length]?.run(key, order, text)
  parentPort?.postMessage([])
})
