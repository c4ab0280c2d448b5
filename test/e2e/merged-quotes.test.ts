import { beforeSuite } from '@sluice/test-support'
import { describe } from 'vitest'
import { shareSluice } from '../support/shared-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { checkMerges, type MergeRow, q } from './support/check-merges.ts'

const rows: MergeRow[] = [
  {
    it: 'a new quote updates its source',
    posts: [{ quotes: [] }, q({})],
    outcomes: ['updated', 'created'],
    source: { wordCount: 2 },
  },
  {
    it: 'a changed quote updates its source',
    posts: [q({}), q({ speaker: 'ada' })],
    outcomes: ['updated', 'updated'],
    quote: { speaker: 'ada' },
  },
  {
    it: 'a quote without externalId is identified by speaker, date, reply and text',
    posts: [
      { quotes: [{ text: 'a' }] },
      {
        quotes: [
          { text: 'b' },
          { text: 'a', speaker: 's' },
          { text: 'a', createdAt: '2024-05-01' },
          { text: 'a', replyingTo: 'p' },
          { text: 'a' },
        ],
      },
    ],
    outcomes: ['updated', 'created', 'created', 'created', 'created', 'unchanged'],
  },
  {
    it: 'a quote keeps the fields that a request leaves out',
    posts: [
      q({ speaker: 'ada', replyingTo: 'p', createdAt: '2024-05-01' }),
      q({ replyingTo: null }),
    ],
    outcomes: ['unchanged', 'unchanged'],
    quote: { speaker: 'ada', replyingTo: 'p', createdAt: '2024-05-01T00:00:00.000Z' },
  },
  {
    it: 'a reply can get another parent',
    posts: [q({ replyingTo: 'p' }), q({ replyingTo: 'r' })],
    outcomes: ['updated', 'updated'],
    quote: { replyingTo: 'r' },
  },
  {
    it: 'username changes speaker',
    posts: [q({ speaker: 'ada' }), q({ username: 'eve' })],
    outcomes: ['updated', 'updated'],
    quote: { speaker: 'eve' },
  },
  {
    it: 'a changed text changes the word count',
    posts: [q({}), q({ text: 'one two three' })],
    outcomes: ['updated', 'updated'],
    source: { wordCount: 3 },
  },
  {
    it: 'wordCount counts quotes of earlier posts',
    posts: [q({}), { quotes: [{ text: 'three', externalId: 'r' }] }],
    outcomes: ['updated', 'created'],
    source: { wordCount: 3 },
  },
  {
    it: 'an empty list removes no quote',
    posts: [q({}), { quotes: [] }],
    outcomes: ['unchanged'],
    source: { wordCount: 2 },
  },
  {
    it: 'a shorter list removes no quote',
    posts: [{ quotes: [{ text: 'a' }, { text: 'b' }] }, { quotes: [{ text: 'b' }] }],
    outcomes: ['unchanged', 'unchanged'],
    source: { wordCount: 2 },
  },
  {
    it: 'a parent that arrives later does not change the reply',
    posts: [
      q({ replyingTo: 'p' }),
      {
        quotes: [
          { text: 'parent', externalId: 'p' },
          { text: 'one two', externalId: 'q' },
        ],
      },
    ],
    outcomes: ['updated', 'created', 'unchanged'],
  },
  {
    it: 'a quote without externalId that is posted again is unchanged',
    posts: [
      { quotes: [{ text: 'a', speaker: 'ada' }] },
      { quotes: [{ text: 'a', username: 'ada' }] },
    ],
    outcomes: ['unchanged', 'unchanged'],
  },
  {
    it: 'equal quotes are distinguished by their count',
    posts: [
      { quotes: [{ text: 'a' }, { text: 'a' }] },
      { quotes: [{ text: 'a' }, { text: 'a' }, { text: 'a' }] },
    ],
    outcomes: ['updated', 'unchanged', 'unchanged', 'created'],
    source: { wordCount: 3 },
  },
  {
    it: "votes are not part of a quote's identity",
    posts: [{ quotes: [{ text: 'a', upVotes: 1 }] }, { quotes: [{ text: 'a', upVotes: 2 }] }],
    outcomes: ['updated', 'updated'],
    quote: { upVotes: 2 },
  },
  {
    it: 'the order of quotes without externalId does not matter',
    posts: [{ quotes: [{ text: 'a' }, { text: 'b' }] }, { quotes: [{ text: 'b' }, { text: 'a' }] }],
    outcomes: ['unchanged', 'unchanged', 'unchanged'],
  },
]

describe('quotes that are posted again are merged', () => {
  let caller: Caller
  beforeSuite(async (t) => {
    caller = createCaller(await shareSluice(t))
  })

  checkMerges(() => caller, rows)
})
