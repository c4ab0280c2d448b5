import assert from 'node:assert/strict'
import type { Client, ItemResult } from '@sluice/client'
import { PROBLEMS, type Problem, type ProblemCode, type ThreadRequest } from '@sluice/contract'
import { test } from 'vitest'
import { createLedger, emptyTally, type RejectedRecord } from '../account/ledger.ts'
import { createSender, ServiceBusy } from './send-threads.ts'

type Answer = (thread: ThreadRequest) => ProblemCode | undefined

interface Service {
  answer?: Answer
  stored?: Record<string, string>
  lookupFault?: Error
}

/** A sender with a service that answers each batch at once, unless the test holds it back. */
function open({ answer = () => undefined, stored = {}, lookupFault }: Service = {}) {
  const stop = new AbortController()
  const sent: string[][] = []
  const lookups: string[] = []
  const rejected: RejectedRecord[] = []
  const failures: unknown[] = []
  const titles = new Map(Object.entries(stored))
  let gate = Promise.resolve()
  const client: Pick<Client, 'postBatch' | 'getSource'> = {
    async postBatch(threads) {
      sent.push(threads.map(({ externalId, title }) => `${externalId}: ${title}`))
      await gate
      for (const { externalId, title } of threads) titles.set(externalId, title)
      return threads.map((thread, index) => resultOf(index, thread, answer(thread)))
    },
    async getSource(source) {
      const { externalId } = Object(source)
      lookups.push(externalId)
      if (lookupFault !== undefined) throw lookupFault
      const title = titles.get(externalId)
      return title === undefined ? undefined : ({ source: { title }, quotes: [] } as never)
    },
  }
  const ledger = createLedger(emptyTally(), (record) => void rejected.push(record))
  const fail = (error: unknown) => {
    failures.push(error)
    stop.abort(error)
  }
  const sender = createSender({
    client,
    concurrency: 4,
    ledger,
    stopping: stop.signal,
    hurry: stop.signal,
    onRetry: () => {},
    fail,
  })
  async function add(externalId: string, title?: string, placeholderTitle?: string) {
    const entry = ledger.open()
    entry.open += 1
    const request = { service: 'slack' as const, externalId, quotes: [], ...(title !== undefined && { title }) }
    await sender.add({ request, placeholderTitle, place: { path: 'a', line: 7 }, entry })
    ledger.close(entry)
  }
  return { sender, ledger, add, sent, lookups, rejected, failures, hold: (until: Promise<void>) => (gate = until) }
}

function resultOf(index: number, { externalId }: ThreadRequest, code: ProblemCode | undefined): ItemResult {
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
    ...(status === 400 && { errors: [{ pointer: '/title', code: 'required', message: 'title is required.' }] }),
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
  assert.ok(failures[0] instanceof ServiceBusy)
  assert.deepEqual([ledger.tally.events, rejected.length], [0, 0])
})

test('a missing title is the stored one, else the placeholder', async () => {
  const { sender, add, sent } = open({ stored: { known: 'Stored' } })
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
