// The thread of the external sort: SQLite sorts, and its calls block.
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { crc32 } from 'node:zlib'
import { createConversations } from './conversations.ts'
import { LIST_UNITS, type SortedRecord, type SortRequest, unitsOf } from './external-sort.ts'

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
  CREATE TABLE mails (text TEXT);
  ${BUCKETS.map((bucket) => `CREATE TABLE ${bucket} (key TEXT, place TEXT, text TEXT, mail INTEGER);`).join('')}
`)
const inserts = BUCKETS.map((bucket) => db.prepare(`INSERT INTO ${bucket} VALUES (?, ?, ?, ?)`))
const insertMail = db.prepare('INSERT INTO mails VALUES (?)')
const conversations = createConversations(db)

function* sortedLists(): Generator<SortedRecord[], undefined> {
  // The texts of mails stay where they are. Conversations lie in the order of the input, so reading them is sequential.
  for (const { share, key, place, text, mail } of conversations.records())
    inserts[Math.floor(share * BUCKETS.length)]?.run(key, place, text, mail)
  let list: SortedRecord[] = []
  let units = 0
  for (const bucket of BUCKETS) {
    const textOf = `coalesce(text, (SELECT text FROM mails WHERE mails.rowid = mail))`
    const rows = db.prepare(`SELECT key, ${textOf} AS text FROM ${bucket} ORDER BY key, place, rowid`)
    for (const row of rows.iterate()) {
      const record = { key: String(row.key), text: String(row.text) }
      list.push(record)
      units += unitsOf(record)
      if (units < LIST_UNITS) continue
      yield list
      list = []
      units = 0
    }
  }
  yield list
}

const lists = sortedLists()

parentPort?.on('message', (request: SortRequest) => {
  if (request === 'next') return parentPort?.postMessage(lists.next().value ?? [])
  for (const record of request) {
    const { key, order, text, references } = record
    if (references === undefined) inserts[crc32(key) % BUCKETS.length]?.run(key, order, text, null)
    else conversations.add(record, Number(insertMail.run(text).lastInsertRowid))
  }
  parentPort?.postMessage([])
})
