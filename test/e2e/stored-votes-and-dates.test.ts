import assert from 'node:assert/strict'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { checkStored, type StoredRow } from './support/check-stored.ts'
import { storedIn } from './support/read-reply.ts'
import { someQuote, someThread } from './support/some-thread.ts'

const votes: StoredRow[] = [
  {
    it: 'score follows from the votes',
    send: someThread({ upVotes: 5, downVotes: 2 }),
    source: { score: 3 },
  },
  {
    it: 'missing downvotes count as 0',
    send: someQuote({ upVotes: 5 }),
    quote: { score: 5 },
    absent: ['downVotes'],
  },
  {
    it: 'missing upvotes count as 0',
    send: someQuote({ downVotes: 5 }),
    quote: { score: -5 },
    absent: ['upVotes'],
  },
  {
    it: 'a score that was sent is kept',
    send: someThread({ upVotes: 5, score: 99 }),
    source: { score: 99 },
  },
  {
    it: 'a difference that is too large makes no score',
    send: someThread({ upVotes: 1e308, downVotes: -1e308 }),
    source: {},
    absent: ['score'],
  },
  {
    it: 'votes may be negative and fractional',
    send: someQuote({ upVotes: -1.5 }),
    quote: { upVotes: -1.5, score: -1.5 },
  },
  {
    it: 'the largest double is a vote',
    send: someThread({ upVotes: Number.MAX_VALUE }),
    source: { upVotes: Number.MAX_VALUE },
  },
]

const dates: StoredRow[] = [
  ['2024-05-01', '2024-05-01T00:00:00.000Z'],
  ['2024-05-01T10:00:00Z', '2024-05-01T10:00:00.000Z'],
  ['2024-05-01T10:00:00', '2024-05-01T10:00:00.000Z'],
  ['2024-05-01T10:00', '2024-05-01T10:00:00.000Z'],
  ['2024-05-01T10:00:00.123456', '2024-05-01T10:00:00.123Z'],
  ['2024-05-01T10:00:00.9999Z', '2024-05-01T10:00:00.999Z'],
  ['2024-05-01T10:00:00.5Z', '2024-05-01T10:00:00.500Z'],
  ['2024-05-01T10:00:00+02', '2024-05-01T08:00:00.000Z'],
  ['2024-05-01T10:00:00+0530', '2024-05-01T04:30:00.000Z'],
  ['2024-05-01T23:00:00-02:00', '2024-05-02T01:00:00.000Z'],
  ['2024-02-29', '2024-02-29T00:00:00.000Z'],
  ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
  ['0001-01-01', '0001-01-01T00:00:00.000Z'],
].flatMap(([sent, createdAt]): StoredRow[] => [
  {
    it: `${sent} is a date of a source`,
    send: someThread({ createdAt: sent }),
    source: { createdAt },
  },
  {
    it: `${sent} is a date of a quote`,
    send: someQuote({ createdAt: sent }),
    quote: { createdAt },
  },
])

describe('votes and dates are stored and returned in one form', () => {
  let sluice: SharedSluice
  let caller: Caller
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    caller = createCaller(sluice)
  })

  checkStored(() => caller, [...votes, ...dates])

  test('createdAt of a source defaults to the moment of acceptance, that of a quote to nothing', async () => {
    const before = Date.now()
    const { source, quotes } = storedIn(await caller.post(someThread()))
    const accepted = Date.parse(source.createdAt)
    assert.ok(accepted >= before - 5 && accepted <= Date.now() + 5)
    assert.match(source.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.equal(quotes[0]?.createdAt, undefined)
  })

  test('dates are stored as dates', async () => {
    const { source } = storedIn(await caller.post(someThread({ createdAt: '2024-05-01' })))
    const stored = await sluice.db
      .collection<{ _id: string; createdAt: Date }>('sources')
      .findOne({ _id: source.id })
    assert.deepEqual(stored?.createdAt, new Date('2024-05-01'))
  })
})
