import assert from 'node:assert/strict'
import type { QuoteDocument } from '@sluice/store'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { type Body, someThread } from './support/some-thread.ts'

// The order of a thread's messages, as a reader of MongoDB sees it.

const DATE = '2024-05-01T09:00:00.000Z'
/** 16 digits of a stamp, 6 digits of an index. */
const POSITION = /^\d{16}\.\d{6}$/

const PARTS = 5
const PER_PART = 120

describe('the order of messages', () => {
  let sluice: SharedSluice
  let caller: Caller
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    caller = createCaller(sluice)
  })

  /**
   * The stored quotes of a source in this order. Quotes of one place come in the order of their
   * hashes, not in that of their insertion.
   */
  async function readQuotes(externalId: string, sort: Record<string, 1>): Promise<QuoteDocument[]> {
    const source = await sluice.db.collection('sources').findOne({ externalId })
    const filter = { sourceId: String(source?._id) }
    return sluice.db
      .collection<QuoteDocument>('quotes')
      .find(filter)
      .sort({ ...sort, _id: 1 })
      .toArray()
  }

  async function importAll(threads: Body[]) {
    const body = threads.map((thread) => JSON.stringify(thread)).join('\n')
    const { status, text } = await caller.postImport(body)
    assert.equal(status, 200)
    return JSON.parse(text.trim().split('\n').at(-1) ?? '').summary
  }

  test('threads that are imported in parts, all with one date, keep their order in MongoDB', async () => {
    const names = ['order-1', 'order-2', 'order-3']
    const texts = Array.from({ length: PARTS * PER_PART }, (_, at) => `message ${at}`)
    const quotes = texts.map((text) => ({ text, createdAt: DATE }))
    const partOf = (part: number) => quotes.slice(part * PER_PART, (part + 1) * PER_PART)
    const threads = Array.from({ length: PARTS }, (_, part) =>
      names.map((externalId) => someThread({ externalId, quotes: partOf(part) })),
    ).flat()
    assert.equal((await importAll(threads)).failed, 0)
    for (const name of names) {
      const stored = await readQuotes(name, { createdAt: 1, position: 1 })
      assert.deepEqual(
        stored.map(({ text }) => text),
        texts,
      )
      assert.ok(stored.every(({ position = '' }) => POSITION.test(position)))
    }
  })

  test('messages that are posted again keep their places, and new ones follow', async () => {
    const say = (...texts: string[]) =>
      someThread({
        externalId: 'order-again',
        quotes: texts.map((text) => ({ externalId: text, text })),
      })
    const replies = []
    for (const texts of [
      ['b', 'a', 'b', 'c'],
      ['d', 'c', 'b', 'a'],
      ['e', 'a'],
    ])
      replies.push(await caller.post(say(...texts)))
    assert.deepEqual(
      (await readQuotes('order-again', { position: 1 })).map(({ text }) => text),
      ['b', 'a', 'c', 'd', 'e'],
    )
    for (const { text } of replies) assert.doesNotMatch(text, /position/)
  })
})
