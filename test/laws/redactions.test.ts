import assert from 'node:assert/strict'
import type { QuoteFields, Redacts } from '@sluice/contract'
import { createBatchStore, type DeleteRequest, isLive, type PostRequest } from '@sluice/store'
import { quoteIdOf, sourceIdOf } from '@sluice/store/ids'
import { test } from 'vitest'
import { createMemoryDatabase } from './explorer/memory-database.ts'
import { requestOf } from './support/histories.ts'

// A redaction erases the words and speakers of stored quotes. It has a place in the order of
// acceptance, as every other request.

const source = {
  service: 'slack' as const,
  externalId: 't1',
  title: 'Ada says',
  description: 'words of Ada',
}
const sourceId = sourceIdOf('acme', source)
const said: QuoteFields[] = [
  { externalId: 't1', text: 'two words', speaker: 'Ada', upVotes: 3 },
  { externalId: 'q2', text: 'three more words', speaker: 'Ada', replyingTo: 't1' },
  { externalId: 'q3', text: 'words of Bob', speaker: 'Bob' },
]
const post = (place: number, quotes = said) => requestOf({ source, quotes }, place)
const redaction = (place: number, ...names: string[]) => redactionOf('all', place, ...names)
const redactionOf = (redacts: Redacts, place: number, ...names: string[]): DeleteRequest => ({
  ...{ id: `e${place}`, tenant: 'acme', stamp: place * 1_000_000, redelivered: false },
  deletes: { sourceId, quoteIds: names.map((name) => quoteIdOf(sourceId, name)), redacts },
})

function open() {
  const { commands, all } = createMemoryDatabase()
  const { store } = createBatchStore(commands)
  const stored = () => {
    const [stored = assert.fail()] = all('sources')
    assert(isLive(stored))
    const { title, description, wordCount, quoteCount } = stored
    const quotes = all('quotes')
      .toSorted((one, other) => (one.position < other.position ? -1 : 1))
      .map(({ text, speaker, wordCount: words }) => [text, speaker, words])
    return { title, description, wordCount, quoteCount, quotes }
  }
  const run = async (...requests: (PostRequest | DeleteRequest)[]) =>
    Array.from((await store(requests)).values())
  return { run, stored, all }
}

const WITHOUT_ADA = {
  ...{ title: '[erased]', description: '[erased]', wordCount: 3, quoteCount: 3 },
  quotes: [
    ['[erased]', '[erased]', 0],
    ['[erased]', '[erased]', 0],
    ['words of Bob', 'Bob', 3],
  ],
}

test('a redaction leaves ids, places, votes and replies, and counts no words', async () => {
  const { run, stored, all } = open()
  await run(post(1))
  const before = all('quotes').map(({ _id, position, upVotes, replyingTo, score }) => ({
    ...{ _id, position, upVotes, replyingTo, score },
  }))
  assert.deepEqual(await run(redaction(2, 'q2', 't1', 'q9')), [{ outcome: 'deleted', quotes: 2 }])
  assert.deepEqual(stored(), WITHOUT_ADA)
  assert.deepEqual(
    all('quotes').map(({ _id, position, upVotes, replyingTo, score }) => ({
      ...{ _id, position, upVotes, replyingTo, score },
    })),
    before,
  )
  assert.deepEqual(await run({ ...redaction(2, 'q2', 't1'), redelivered: true }), [
    { outcome: 'deleted', quotes: 2 },
  ])
})

test('the title stays if only quotes are redacted', async () => {
  const { run, stored } = open()
  await run(post(1))
  assert.deepEqual(await run(redactionOf('quotes', 2, 'q2')), [{ outcome: 'deleted', quotes: 1 }])
  assert.deepEqual([stored().title, stored().wordCount], ['Ada says', 5])
  assert.deepEqual(await run(redaction(3)), [{ outcome: 'deleted', quotes: 0 }])
  assert.deepEqual([stored().title, stored().wordCount], ['[erased]', 5])
})

test('what was accepted before a redaction brings nothing back, and what is accepted later does', async () => {
  const { run, stored } = open()
  await run(post(1), redaction(3, 't1', 'q2'))
  assert.deepEqual(stored(), WITHOUT_ADA)
  await run({ ...post(1), redelivered: true })
  await run(post(2))
  assert.deepEqual(stored(), WITHOUT_ADA)
  await run(post(4), redaction(3, 't1'))
  assert.deepEqual(
    [stored().title, stored().wordCount, stored().quotes[0]?.[1]],
    ['Ada says', 8, 'Ada'],
  )
})

test('nothing that is absent, or of another tenant, is redacted', async () => {
  const { run, stored, all } = open()
  assert.deepEqual(await run(redaction(1, 't1')), [{ outcome: 'absent', quotes: 0 }])
  assert.deepEqual([all('sources'), all('quotes')], [[], []])
  await run(post(2))
  const foreign = { ...redaction(3, 't1'), tenant: 'globex' }
  assert.deepEqual(await run(foreign), [{ outcome: 'absent', quotes: 0 }])
  assert.deepEqual(await run(redactionOf('quotes', 4, 'q9')), [{ outcome: 'absent', quotes: 0 }])
  assert.equal(stored().wordCount, 8)
})

test('a quote whose speaker and text are newer than the redaction is left, and keeps its place', async () => {
  const { run, stored, all } = open()
  await run(post(5))
  const [first] = all('quotes')
  assert.deepEqual(await run(redaction(4, 't1')), [{ outcome: 'absent', quotes: 0 }])
  assert.equal(stored().wordCount, 8)
  assert.equal(all('quotes')[0]?.position, first?.position)
})

test('quotes of a suppressed speaker are stored as redacted, under their own ids', async () => {
  const { run, stored, all } = open()
  const nameless = ['one', 'one', 'two'].map((text) => ({ text, speaker: 'Ada' }))
  const suppressions = { hashOf: (name: string) => name, has: (name: string) => name === 'Ada' }
  const outcomes = async (request: PostRequest) => {
    const [answer] = await run(request)
    assert(answer && 'source' in answer)
    return [answer.source.outcome, answer.quotes.map(({ outcome }) => outcome).join()]
  }
  const quotes = [...said, ...nameless]
  const of = (place: number) => ({ ...post(place, quotes), suppressions })
  const all6 = 'suppressed,suppressed,created,suppressed,suppressed,suppressed'
  assert.deepEqual(await outcomes(of(1)), ['created', all6])
  const without = { ...WITHOUT_ADA, quoteCount: 6 }
  const more = nameless.map(() => ['[erased]', '[erased]', 0])
  assert.deepEqual(stored(), { ...without, quotes: [...WITHOUT_ADA.quotes, ...more] })
  const ids = all('quotes').map(({ _id }) => _id)
  for (const place of [2, 3])
    assert.deepEqual(await outcomes(of(place)), ['unchanged', all6.replace('created', 'unchanged')])
  // What was accepted before brings no word back, and what is accepted after the end does.
  await run({ ...post(3, quotes), redelivered: true })
  assert.equal(stored().wordCount, 3)
  assert.equal((await outcomes(post(4, quotes)))[0], 'updated')
  assert.deepEqual([stored().title, stored().wordCount], ['Ada says', 11])
  assert.deepEqual(
    all('quotes').map(({ _id }) => _id),
    ids,
  )
  // The repeat of a thread that is stored with its words is no repeat once its speaker is
  // suppressed.
  await run(post(5, quotes))
  assert.deepEqual(await outcomes(of(6)), ['updated', all6.replace('created', 'unchanged')])
  assert.deepEqual(stored(), { ...without, quotes: [...WITHOUT_ADA.quotes, ...more] })
})

test('a post that only repeats an erased title changes nothing while its speaker is suppressed', async () => {
  const suppressed = new Set(['#Ada'])
  const suppressions = {
    hashOf: (name: string) => `#${name}`,
    has: (hash: string) => suppressed.has(hash),
  }
  const bob = { externalId: 'q4', text: 'more of Bob', speaker: 'Bob' }
  const of = (place: number, quotes: QuoteFields[]) => ({
    ...requestOf({ source: { ...source, channelName: 'Ada, Bob' }, quotes }, place),
    suppressions,
  })
  const erases = redactionOf('channel', 3)
  const erasure = { ...erases, deletes: { ...erases.deletes, speaker: '#Ada' }, suppressions }
  const requests = [of(1, [bob]), of(2, said), erasure, of(4, [bob])]
  const orders = [
    [0, 1, 2, 3],
    [3, 2, 0, 1],
    [1, 3, 2, 0],
    [3, 1],
    [1, 3],
    [0, 3, 2],
  ]
  for (const order of orders) {
    const { run, all } = open()
    for (const at of order) await run(requests[at] ?? assert.fail())
    const fields = () => {
      const [stored = assert.fail()] = all('sources')
      assert(isLive(stored))
      return [stored.title, stored.description, stored.channelName]
    }
    assert.deepEqual(fields(), ['[erased]', '[erased]', '[erased]'], order.join())
    // A speaker that nobody suppresses keeps nothing erased.
    suppressed.delete('#Ada')
    await run(of(5, [bob]))
    assert.deepEqual(fields(), ['Ada says', 'words of Ada', 'Ada, Bob'])
    suppressed.add('#Ada')
    await run(of(6, [bob]))
    assert.equal(fields()[0], 'Ada says')
  }
})
