import assert from 'node:assert/strict'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { checkMerges, type MergeRow, q } from './support/check-merges.ts'
import { storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const rows: MergeRow[] = [
  {
    it: 'the same date in another form changes nothing',
    posts: [
      { createdAt: '2024-05-01', quotes: [] },
      { createdAt: '2024-05-01T02:00+02', quotes: [] },
    ],
    outcomes: ['unchanged'],
  },
  {
    it: 'score follows from the votes of several posts',
    posts: [q({ upVotes: 5 }), q({ downVotes: 2 })],
    outcomes: ['updated', 'updated'],
    quote: { upVotes: 5, downVotes: 2, score: 3 },
  },
  {
    it: 'the score of a source follows from the votes of several posts',
    posts: [
      { upVotes: 5, quotes: [] },
      { downVotes: 2, quotes: [] },
      { upVotes: 6, quotes: [] },
    ],
    outcomes: ['updated'],
    source: { score: 4 },
  },
  {
    it: 'a score that was sent once is kept',
    posts: [q({ score: 40 }), q({ upVotes: 5, downVotes: 2 })],
    outcomes: ['updated', 'updated'],
    quote: { score: 40, upVotes: 5 },
  },
  {
    it: 'a score that is sent later replaces the computed one',
    posts: [q({ upVotes: 5 }), q({ score: 1 }), q({ upVotes: 9 })],
    outcomes: ['updated', 'updated'],
    quote: { score: 1, upVotes: 9 },
  },
  {
    it: 'a score that is sent equal to the computed one is kept',
    posts: [q({ upVotes: 5 }), q({ score: 5 }), q({ upVotes: 9 })],
    outcomes: ['updated', 'updated'],
    quote: { upVotes: 9, score: 5 },
  },
  {
    it: 'the score is removed if the difference overflows',
    posts: [q({ upVotes: 1e308 }), q({ downVotes: -1e308 })],
    outcomes: ['updated', 'updated'],
    quote: {},
    absent: ['score'],
  },
  {
    it: 'the score of a source is removed if the difference overflows',
    posts: [
      { upVotes: 1e308, quotes: [] },
      { downVotes: -1e308, quotes: [] },
    ],
    outcomes: ['updated'],
    source: { downVotes: -1e308 },
    absent: ['score'],
  },
  {
    it: 'an earlier date that is sent later replaces the default',
    posts: [{ quotes: [] }, { createdAt: '2020-01-01', quotes: [] }],
    outcomes: ['updated'],
    source: { createdAt: '2020-01-01T00:00:00.000Z' },
  },
  {
    it: 'a later date that is sent later replaces the default',
    posts: [{ quotes: [] }, { createdAt: '2040-01-01', quotes: [] }],
    outcomes: ['updated'],
    source: { createdAt: '2040-01-01T00:00:00.000Z' },
  },
  {
    it: 'a date that was sent is kept',
    posts: [{ createdAt: '2040-01-01', quotes: [] }, { quotes: [] }],
    outcomes: ['unchanged'],
    source: { createdAt: '2040-01-01T00:00:00.000Z' },
  },
]

describe('votes and dates are merged from all posts', () => {
  let sluice: SharedSluice
  let caller: Caller
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    caller = createCaller(sluice)
  })

  checkMerges(() => caller, rows)

  test('the default of createdAt is the time of the first post', async () => {
    const thread = someThread({ quotes: [] })
    const first = storedIn(await caller.post(thread))
    const second = storedIn(await caller.post({ ...thread, title: 'another' }))
    assert.equal(second.source.createdAt, first.source.createdAt)
  })
})
