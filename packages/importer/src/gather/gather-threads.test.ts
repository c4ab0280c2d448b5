import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'vitest'
import type { Format, Found, InputFile, Piece, QuoteInput } from '../formats/format.ts'
import { inputFile } from '../formats/read-all.test-support.ts'
import { createExternalSort } from './external-sort.ts'
import { type ImportEvent, readGathered } from './gather-threads.ts'

const options = { map: new Map(), set: new Map() }
const place = { path: 'file' }

function piece(externalId: string, order: string, given: Partial<Piece> = {}): Piece {
  const quotes = [{ text: `${externalId} ${order}` }]
  return { kind: 'piece', service: 'slack', externalId, order, fields: {}, quotes, place, ...given }
}

async function readAll(found: readonly Found[], hasWholeThreads = false, files: InputFile[] = []) {
  const format: Format = {
    name: 'test',
    title: 'test',
    description: 'test',
    sourceIs: 'a line',
    hasWholeThreads,
    recognises: () => true,
    async *read() {
      for (const one of found) yield [one]
    },
  }
  const sorted = { total: 0, done: 0 }
  const openSort = () =>
    createExternalSort({ folder: tmpdir(), signal: new AbortController().signal })
  const events: ImportEvent[] = []
  for await (const list of readGathered(format, files, options, { openSort, sorted })) {
    const large = list.filter((event) => event.kind === 'piece' && event.isContinued)
    assert.ok(large.length <= 1, 'memory has one thread of a large source at a time')
    events.push(...list)
  }
  assert.equal(sorted.done, sorted.total)
  return events
}

/** Sources come in the order of the sort. */
const threadsOf = (events: readonly ImportEvent[]) =>
  events.flatMap((event) =>
    event.kind === 'piece'
      ? [[event.externalId, event.quotes.map(({ text }) => text), event.fields]]
      : [],
  )

test('the pieces of a source become one thread in their order, equal ones as they came', async () => {
  const pieces = [
    piece('b', '2'),
    piece('a', '3'),
    piece('b', '1'),
    piece('a', '1'),
    piece('a', '1', { quotes: [{ text: 'later' }] }),
  ]
  assert.deepEqual(threadsOf(await readAll(pieces)).sort(), [
    ['a', ['a 1', 'later', 'a 3'], {}],
    ['b', ['b 1', 'b 2'], {}],
  ])
})

test('a field of a later piece replaces that of an earlier one', async () => {
  const pieces = [
    piece('a', '2', { fields: { title: 'new', url: 'u' } }),
    piece('a', '1', { fields: { title: 'old', channelName: 'c' } }),
    piece('a', '3', { fields: { channelName: 'c' } }),
  ]
  const [thread] = threadsOf(await readAll(pieces))
  assert.deepEqual(thread?.[2], { title: 'new', url: 'u', channelName: 'c' })
})

test('a source that memory does not hold goes on in the next thread, with all fields from the first on', async () => {
  const long = 'x'.repeat(1.5 * 1024 * 1024)
  const pieces = Array.from({ length: 8 }, (_, at) =>
    piece('a', String(at), { quotes: [{ text: `${at}${long}` }] }),
  )
  const last = piece('a', '9', { fields: { title: 'T' } })
  const events = await readAll([...pieces, last, piece('b', '1')])
  assert.deepEqual(
    events.flatMap((event) =>
      event.kind === 'piece' && event.externalId === 'a'
        ? [[event.fields.title, event.isContinued]]
        : [],
    ),
    [
      ['T', true],
      ['T', true],
      ['T', false],
    ],
  )
  assert.equal(events.flatMap((event) => (event.kind === 'piece' ? event.quotes : [])).length, 10)
})

test('a long text stays whole, also if memory does not hold the source', async () => {
  const texts = ['1', '2', '3'].map((order) => `${order}${'😀'.repeat(2_500_000)}`)
  const pieces = texts.map((text, at) =>
    piece('a', '1', { quotes: [{ text, externalId: String(at) }], references: [] }),
  )
  const read = threadsOf(await readAll(pieces)).flatMap(([, quotes]) => quotes)
  assert.ok(texts.length === read.length && texts.every((text, at) => text === read[at]))
})

test('a format whose pieces are whole threads keeps the order of the input', async () => {
  const rejected: Found = { kind: 'rejected', reason: 'r', place, record: 1 }
  const events = await readAll([piece('b', ''), rejected, piece('a', '')], true)
  assert.deepEqual(
    events.map((event) => (event.kind === 'piece' ? event.externalId : event.kind)),
    ['b', 'rejected', 'a'],
  )
})

test('equal quotes without ids are one if they are of several files, and several if they are of one', async () => {
  const quote = (path: string, text: string, more: Partial<QuoteInput> = {}) =>
    piece('a', '1', { place: { path }, quotes: [{ text, speaker: 'Ada', ...more }] })
  const files = ['1.csv', '2.csv'].map((path) => inputFile(path, ''))
  const long = 'x'.repeat(1.5 * 1024 * 1024)
  for (const texts of [
    ['Hi', 'Hi', 'Ho'],
    ['Hi', 'Hi', ...[1, 2, 3, 4].map((at) => at + long), 'Ho'],
  ]) {
    const first = texts.map((text) => quote('1.csv', text))
    const second = [...texts, 'Hi', 'Hu'].map((text) => quote('2.csv', text))
    const others = [
      quote('2.csv', 'Hi', { externalId: '1' }),
      quote('2.csv', '', { attachments: ['a.png'] }),
    ]
    const events = await readAll([...first, ...second, ...others], false, files)
    const threads = events.filter((event) => event.kind === 'piece')
    assert.deepEqual(
      threads.flatMap(({ quotes }) => quotes.map(({ text }) => text)),
      [...texts, 'Hi', 'Hu', 'Hi', ''],
    )
    const copies = threads.map((thread) => thread.copies ?? 0).reduce((sum, one) => sum + one)
    assert.equal(copies, texts.length)
  }
  const alone = await readAll(
    ['Hi', 'Hi'].map((text) => quote('1.csv', text)),
    false,
    files.slice(1),
  )
  assert.deepEqual(threadsOf(alone)[0]?.[1], ['Hi', 'Hi'])
})
