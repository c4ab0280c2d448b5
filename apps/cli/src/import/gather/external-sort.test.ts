import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'vitest'
import { createExternalSort } from './external-sort.ts'
import type { SortRecord } from './sort-runs.ts'

async function someFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-sort-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Records in an order of their own, many of them equal but for their text. */
function someRecords(count: number): SortRecord[] {
  return Array.from({ length: count }, (_, at) => ({
    key: `key ${(at * 7_919) % 101}`,
    order: String((at * 31) % 5),
    text: `${at} ${'é'.repeat(at % 40)}`,
  }))
}

const sorted = (records: readonly SortRecord[]) =>
  records.toSorted((a, b) => compare(a.key, b.key) || compare(a.order, b.order))
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

async function sortAll(records: readonly SortRecord[], options: Parameters<typeof createExternalSort>[0]) {
  await using sort = createExternalSort(options)
  for (const record of records) await sort.add(record)
  const all: SortRecord[] = []
  for await (const list of sort.sorted()) all.push(...list)
  return all
}

test('records that memory does not hold are sorted, equal ones as they came', async (t) => {
  const folder = await someFolder(t)
  const records = someRecords(5_000)
  assert.deepEqual(await sortAll(records, { folder, memoryUnits: 20_000 }), sorted(records))
})

test('more runs than are merged at once are merged in several passes', async (t) => {
  const folder = await someFolder(t)
  const records = someRecords(3_000)
  assert.deepEqual(await sortAll(records, { folder, memoryUnits: 2_000, fanIn: 3 }), sorted(records))
})

test('a record that is longer than a slice of the merge is read whole', async (t) => {
  const folder = await someFolder(t)
  const long = { key: 'b', order: '', text: 'x'.repeat(20 * 1024 * 1024) }
  const records = [{ key: 'c', order: '', text: '' }, long, { key: 'a', order: '', text: '1' }]
  assert.deepEqual(await sortAll(records, { folder, memoryUnits: 10 }), sorted(records))
})

test('what memory holds is sorted without a file', async () => {
  const records = someRecords(500)
  assert.deepEqual(await sortAll(records, { folder: '/does/not/exist' }), sorted(records))
  assert.deepEqual(await sortAll([], { folder: '/does/not/exist' }), [])
})

test('no file has a name while it is used, so that none is left behind', async (t) => {
  const folder = await someFolder(t)
  await using sort = createExternalSort({ folder, memoryUnits: 10 })
  await sort.add({ key: 'a', order: '', text: 'x'.repeat(100) })
  assert.deepEqual(await readdir(folder), [])
})

test('an aborted signal ends the sort', async (t) => {
  const ended = new AbortController()
  const folder = await someFolder(t)
  const sorting = sortAll(
    someRecords(100).map((record, at) => {
      if (at === 50) ended.abort(new Error('stop'))
      return record
    }),
    { folder, memoryUnits: 100, signal: ended.signal },
  )
  await assert.rejects(sorting, /stop/)
})
