import assert from 'node:assert/strict'
import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UserError } from '@sluice/terminal'
import { type TestContext, test } from 'vitest'
import { createExternalSort, LIST_UNITS, type SortRecord } from './external-sort.ts'

async function someFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-sort-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Records that are not sorted. Many of them differ only in their texts. */
function someRecords(count: number): SortRecord[] {
  return Array.from({ length: count }, (_, at) => ({
    key: `key ${(at * 7_919) % 101}`,
    order: String((at * 31) % 5),
    text: `${at} ${'é'.repeat(at % 40)}`,
  }))
}

/** The texts of each key, in their order. */
function grouped(records: readonly SortRecord[]): Map<string, string[]> {
  const ordered = records.toSorted((a, b) => compare(a.order, b.order))
  const texts = Map.groupBy(ordered, ({ key }) => key)
  return new Map([...texts].map(([key, some]) => [key, some.map(({ text }) => text)]))
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** The texts of each key as the sort yields them. Fails if a key comes twice. */
async function sortAll(
  records: readonly SortRecord[],
  folder: string,
  signal = new AbortController().signal,
) {
  await using sort = createExternalSort({ folder, signal })
  for (const record of records) await sort.add(record)
  const groups = new Map<string, string[]>()
  let last: string | undefined
  for await (const list of sort.sorted()) {
    for (const { key, text } of list) {
      if (key !== last) assert.ok(!groups.has(key), `${key} comes twice`)
      groups.set(key, [...(key === last ? (groups.get(key) ?? []) : []), text])
      last = key
    }
  }
  return groups
}

test('records of a key follow each other in their order, equal ones as they came', async (t) => {
  const folder = await someFolder(t)
  const records = someRecords(20_000)
  assert.deepEqual(sortedByKey(await sortAll(records, folder)), sortedByKey(grouped(records)))
  assert.deepEqual(await sortAll([], folder), new Map())
})

const sortedByKey = (groups: ReadonlyMap<string, string[]>) =>
  [...groups].toSorted(([a], [b]) => compare(a, b))

test('records that are sorted in several parts are merged in their order, equal ones as they came', async (t) => {
  const folder = await someFolder(t)
  const records = someRecords(600).map((record) => ({
    ...record,
    text: `${record.text}${'x'.repeat(50_000)}`,
  }))
  assert.deepEqual(sortedByKey(await sortAll(records, folder)), sortedByKey(grouped(records)))
})

test('the order is the same each time, which a checkpoint relies on', async (t) => {
  const folder = await someFolder(t)
  const records = someRecords(1_000)
  assert.deepEqual(
    [...(await sortAll(records, folder)).keys()],
    [...(await sortAll(records, folder)).keys()],
  )
})

test('a record may be longer than all memory of the sort, and contain any character', async (t) => {
  const folder = await someFolder(t)
  const records = [
    { key: 'slack\0c', order: '', text: '\0é😀' },
    { key: 'slack\0b', order: '', text: 'x'.repeat(20 * 1024 * 1024) },
  ]
  assert.deepEqual(sortedByKey(await sortAll(records, folder)), sortedByKey(grouped(records)))
})

test('a list of large records is short, because the event loop waits for it', async (t) => {
  await using sort = createExternalSort({
    folder: await someFolder(t),
    signal: new AbortController().signal,
  })
  for (let at = 0; at < 300; at++)
    await sort.add({ key: `${at}`, order: '', text: 'x'.repeat(100_000) })
  const counts: number[] = []
  for await (const list of sort.sorted()) counts.push(list.length)
  assert.equal(Math.max(...counts), Math.ceil(LIST_UNITS / 100_000))
})

test('the temporary file lies in its folder, and has no name, so that none is left behind', async (t) => {
  const folder = await someFolder(t)
  await using sort = createExternalSort({ folder, signal: new AbortController().signal })
  for (let key = 0; key < 60; key++)
    await sort.add({ key: `${key}`, order: '', text: 'x'.repeat(1024 * 1024) })
  const open = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(String)),
  )
  assert.ok(open.some((path) => path.startsWith(folder) && path.endsWith('(deleted)')))
  assert.deepEqual(await readdir(folder), [])
})

test('a folder that cannot be written is named', async () => {
  await assert.rejects(sortAll(someRecords(10), '/does/not/exist'), (error) => {
    assert.ok(error instanceof UserError)
    assert.match(error.message, /\/does\/not\/exist .* --temp-dir/)
    return true
  })
})

test('an aborted signal ends the sort', async (t) => {
  const ended = new AbortController()
  const folder = await someFolder(t)
  const sorting = sortAll(someRecords(100), folder, ended.signal)
  ended.abort(new Error('stop'))
  await assert.rejects(sorting, /stop/)
})
