import assert from 'node:assert/strict'
import type { Client, ItemResult } from '@sluice/client'
import { PROBLEMS, type Problem, type ProblemCode, type ThreadRequest } from '@sluice/contract'
import { UserError } from '@sluice/terminal'
import { test } from 'vitest'
import { createLedger, emptyTally, type Outgoing, type RejectedRecord } from '../account/ledger.ts'
import { createSender } from './send-threads.ts'

type Answer = (thread: ThreadRequest) => ProblemCode | undefined

interface Service {
  answer?: Answer
  /** Titles and dates of stored sources. */
  stored?: Record<string, { title: string; createdAt?: string }>
  /** The ids of their quotes, in pages. */
  quotesOf?: Record<string, string[][]>
  lookupFault?: Error
}

/** A sender with a service that answers each batch at once, unless the test holds it back. */
function open({ answer = () => undefined, stored = {}, quotesOf = {}, lookupFault }: Service = {}) {
  const stop = new AbortController()
  const sent: string[][] = []
  const posted: ThreadRequest[] = []
  const lookups: string[] = []
  const rejected: RejectedRecord[] = []
  const failures: unknown[] = []
  const sources = new Map(Object.entries(stored))
  let gate = Promise.resolve()
  const client: Pick<Client, 'postBatch' | 'lookUpSources' | 'getSource'> = {
    async postBatch(threads) {
      sent.push(threads.map(({ externalId, title }) => `${externalId}: ${title}`))
      posted.push(...threads)
      await gate
      for (const { externalId, title } of threads) sources.set(externalId, { title })
      return threads.map((thread, index) => resultOf(index, thread, answer(thread)))
    },
    async lookUpSources(service, externalIds) {
      lookups.push(...externalIds)
      if (lookupFault !== undefined) throw lookupFault
      return externalIds.flatMap((externalId) => {
        const source = sources.get(externalId)
        return source === undefined ? [] : [{ service, externalId, ...source } as never]
      })
    },
    async getSource(source, { after = '0' } = {}) {
      const pages = quotesOf[Object(source).externalId] ?? []
      const quotes = pages[Number(after)]?.map((externalId) => ({ externalId }))
      return {
        quotes,
        ...(Number(after) + 1 < pages.length && { next: String(Number(after) + 1) }),
      } as never
    },
  }
  const ledger = createLedger(emptyTally(), (record) => void rejected.push(record))
  const fail = (error: unknown) => {
    failures.push(error)
    stop.abort(error)
  }
  const sender = createSender({
    importId: '00000000-0000-4000-8000-000000000000',
    client,
    concurrency: 4,
    ledger,
    stopping: stop.signal,
    hurry: stop.signal,
    onRetry: () => {},
    fail,
  })
  async function add(
    externalId: string,
    title?: string,
    placeholderTitle?: string,
    more: More = {},
  ) {
    const entry = ledger.open()
    entry.open += 1
    const { conversation, ...fields } = more
    const named = { service: 'slack' as const, externalId, ...(title !== undefined && { title }) }
    await sender.add({
      request: { ...named, quotes: [], ...fields },
      placeholderTitle,
      conversation,
      place: { path: 'a', line: 7 },
      entry,
    })
    ledger.close(entry)
  }
  return {
    sender,
    ledger,
    add,
    sent,
    posted,
    lookups,
    rejected,
    failures,
    hold: (until: Promise<void>) => (gate = until),
  }
}

/** Further fields of a request, and its conversation. */
type More = Partial<Pick<ThreadRequest, 'createdAt' | 'quotes'>> & Pick<Outgoing, 'conversation'>

function resultOf(
  index: number,
  { externalId }: ThreadRequest,
  code: ProblemCode | undefined,
): ItemResult {
  if (code === undefined)
    return {
      index,
      externalId,
      status: 200,
      outcome: 'created',
      id: '1',
      wordCount: 0,
      quotes: { created: 1, updated: 0, unchanged: 0 },
    }
  const { status, title } = PROBLEMS[code]
  const problem: Problem = {
    type: 'about:blank',
    title,
    status,
    detail: 'See errors.',
    code,
    requestId: '1',
    ...(status === 400 && {
      errors: [{ pointer: '/title', code: 'required', message: 'title is required.' }],
    }),
  }
  return { index, status, problem }
}

test('batches are bounded in threads, and the rest is sent at the end', async () => {
  const { sender, add, sent, ledger } = open()
  for (let at = 0; at < 1_100; at++) await add(`t${at}`, 'T')
  await sender.flush()
  assert.deepEqual(
    sent.map((batch) => batch.length),
    [500, 500, 100],
  )
  assert.equal(ledger.tally.threads.created, 1_100)
})

test('a slow input is sent without waiting for a full batch', async () => {
  const { add, sent } = open()
  await add('t1', 'T')
  while (sent.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
  assert.deepEqual(sent, [['t1: T']])
})

test('a look-up that fails ends the import, even if nothing else ever comes', async () => {
  const lookupFault = new Error('The key is not known.')
  const { add, sender, failures } = open({ lookupFault })
  await add('t1', undefined, 'Placeholder')
  while (failures.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
  assert.deepEqual(failures, [lookupFault])
  await sender.flush()
})

test('a refused thread is rejected with its faults and its place', async () => {
  const { sender, add, rejected, ledger } = open({
    answer: ({ externalId }) => (externalId === 'bad' ? 'request_invalid' : undefined),
  })
  await add('good', 'T')
  await add('bad', '')
  await sender.flush()
  assert.deepEqual(rejected, [
    {
      reason: '/title: title is required.',
      place: { path: 'a', line: 7 },
      record: { service: 'slack', externalId: 'bad', quotes: [], title: '' },
    },
  ])
  assert.deepEqual(ledger.tally.threads, { created: 1, updated: 0, unchanged: 0, rejected: 1 })
})

test('a thread that the service could not take is no rejected record: it ends the import, and does not count as settled', async () => {
  const { sender, add, failures, rejected, ledger } = open({ answer: () => 'queue_full' })
  await add('t1', 'T')
  await sender.flush()
  assert.ok(failures[0] instanceof UserError)
  assert.deepEqual([ledger.tally.events, rejected.length], [0, 0])
})

test('a missing title is the stored one, else the placeholder', async () => {
  const { sender, add, sent } = open({ stored: { known: { title: 'Stored' } } })
  await add('known', undefined, 'Thread in general')
  await add('new', undefined, 'Thread in general')
  await add('titled', 'Title')
  await sender.flush()
  assert.deepEqual(sent, [['known: Stored', 'new: Thread in general', 'titled: Title']])
})

test('a title that an earlier request gives counts as stored, in the same batch or in one that is in flight', async () => {
  const { sender, add, sent, lookups, hold } = open()
  const gate = Promise.withResolvers<void>()
  hold(gate.promise)
  await add('t', 'Title')
  for (let at = 1; at < 500; at++) await add(`x${at}`, 'X')
  await add('t', undefined, 'Placeholder')
  const flushed = sender.flush()
  await new Promise(setImmediate)
  assert.deepEqual(lookups, [])
  gate.resolve()
  await flushed
  assert.deepEqual(sent[1], ['t: Title'])
  await add('s', 'Title of s')
  await add('s', undefined, 'Placeholder')
  await sender.flush()
  assert.deepEqual(sent[2], ['s: Title of s', 's: Title of s'])
})

const on = (...days: string[]) => days.map((day) => ({ text: 'x', createdAt: `2024-05-${day}` }))

test('a thread without its root has the earliest date of its quotes, unless an earlier one is stored', async () => {
  const stored = { later: { title: 'S', createdAt: '2024-06-01T00:00:00.000Z' } }
  const earlier = { title: 'S', createdAt: '2024-01-01T00:00:00.000Z' }
  const { sender, add, posted } = open({ stored: { ...stored, earlier } })
  for (const externalId of ['new', 'later', 'earlier'])
    await add(externalId, undefined, 'P', { quotes: on('03', '02') })
  await add('titled', 'Title', 'P', { quotes: on('02') })
  await add('dated', undefined, 'P', { quotes: on('02'), createdAt: '2024-05-09' })
  await add('undated', undefined, 'P', { quotes: [{ text: 'x' }] })
  await add('complete', 'Title', undefined, { quotes: on('02') })
  await sender.flush()
  const may2 = '2024-05-02T00:00:00.000Z'
  assert.deepEqual(
    posted.map(({ externalId, createdAt }) => [externalId, createdAt]),
    [
      ['new', may2],
      ['later', may2],
      ['earlier', undefined],
      ['titled', may2],
      ['dated', '2024-05-09'],
      ['undated', undefined],
      ['complete', undefined],
    ],
  )
})

test('parts of a thread in one batch get its earliest date, in whatever order they come', async () => {
  const { sender, add, posted } = open()
  for (const day of ['05', '03', '04']) await add('t', undefined, 'P', { quotes: on(day) })
  await sender.flush()
  assert.deepEqual(
    posted.map(({ createdAt }) => createdAt?.slice(8, 10)),
    ['05', '03', undefined],
  )
})

const mails = (...ids: string[]) => ids.map((externalId) => ({ externalId, text: 'x' }))
const placesOf = (posted: readonly ThreadRequest[]) =>
  posted.map(({ externalId, title, quotes }) => [
    externalId,
    title,
    quotes.map((quote) => quote.externalId).join(' '),
  ])

test('a conversation stays the source that is stored, whichever of its mails that is named after', async () => {
  const { sender, add, posted, ledger } = open({ stored: { m3: { title: 'Stored' } } })
  await add('m1', 'Root', 'P', {
    conversation: { ids: ['m1', 'm2', 'm3'] },
    quotes: mails('m1', 'm2'),
  })
  await add('n1', 'Other', 'P', { conversation: { ids: ['n1', 'n2'] }, quotes: mails('n1') })
  await sender.flush()
  assert.deepEqual(placesOf(posted), [
    ['m3', 'Stored', 'm1 m2'],
    ['n1', 'Other', 'n1'],
  ])
  assert.deepEqual(ledger.tally.notes.skipped, {})
})

test('the ids of a conversation are looked up once, however many requests it has', async () => {
  const { sender, add, posted, lookups } = open({ stored: { m3: { title: 'Stored' } } })
  const conversation = { ids: ['m1', 'm2', 'm3'] }
  for (const mail of ['m1', 'm2']) {
    await add('m1', 'Root', 'P', { conversation, quotes: mails(mail) })
    await sender.flush()
  }
  assert.deepEqual(placesOf(posted), [
    ['m3', 'Stored', 'm1'],
    ['m3', 'Stored', 'm2'],
  ])
  assert.deepEqual(lookups, ['m1', 'm2', 'm3', 'm1', 'm3'])
})

test('if several sources of a conversation are stored, their mails stay, and new ones join the earliest', async () => {
  const stored = {
    m4: { title: 'Later', createdAt: '2024-05-04T00:00:00.000Z' },
    m2: { title: 'Earlier', createdAt: '2024-05-02T00:00:00.000Z' },
  }
  const { sender, add, posted, ledger } = open({
    stored,
    quotesOf: { m2: [['m2']], m4: [['m4'], ['m5']] },
  })
  const ids = ['m1', 'm2', 'm3', 'm4', 'm5']
  await add('m1', 'Root', 'P', { conversation: { ids }, quotes: mails(...ids) })
  await sender.flush()
  assert.deepEqual(placesOf(posted), [
    ['m2', 'Earlier', 'm1 m2 m3'],
    ['m4', 'Later', 'm4 m5'],
  ])
  assert.deepEqual(ledger.tally.notes.skipped, { 'merges of sources that are one conversation': 1 })
  assert.deepEqual([ledger.tally.events, ledger.tally.threads.created], [1, 1])
})
