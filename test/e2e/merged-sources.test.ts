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
    it: 'the first post creates the source and its quotes',
    posts: [q({})],
    outcomes: ['created', 'created'],
  },
  {
    it: 'a second equal post changes nothing',
    posts: [q({ upVotes: 1 }), q({ upVotes: 1 })],
    outcomes: ['unchanged', 'unchanged'],
  },
  {
    it: 'a third equal post changes nothing',
    posts: [q({}), q({}), q({})],
    outcomes: ['unchanged', 'unchanged'],
  },
  {
    it: 'a post of fewer fields changes nothing',
    posts: [{ url: 'u', ...q({ speaker: 'ada' }) }, q({})],
    outcomes: ['unchanged', 'unchanged'],
    source: { url: 'u' },
    quote: { speaker: 'ada' },
  },
  {
    it: 'a new value replaces the old one',
    posts: [
      { url: 'u', quotes: [] },
      { url: 'v', quotes: [] },
    ],
    outcomes: ['updated'],
    source: { url: 'v' },
  },
  {
    it: 'a new field is added to the stored ones',
    posts: [
      { url: 'u', quotes: [] },
      { description: 'd', quotes: [] },
    ],
    outcomes: ['updated'],
    source: { url: 'u', description: 'd' },
  },
  {
    it: 'null and blank values erase nothing',
    posts: [
      { url: 'u', description: 'd', upVotes: 1, quotes: [] },
      { url: null, description: ' ', upVotes: null, quotes: [] },
    ],
    outcomes: ['unchanged'],
    source: { url: 'u', description: 'd', upVotes: 1 },
  },
  {
    it: 'a new title updates the source',
    posts: [
      { title: 'a', quotes: [] },
      { title: 'b', quotes: [] },
    ],
    outcomes: ['updated'],
    source: { title: 'b' },
  },
  {
    it: 'an earlier title that is posted again updates the source',
    posts: [
      { title: 'a', quotes: [] },
      { title: 'b', quotes: [] },
      { title: 'a', quotes: [] },
    ],
    outcomes: ['updated'],
    source: { title: 'a' },
  },
]

describe('a source that is posted again is merged', () => {
  let sluice: SharedSluice
  let caller: Caller
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    caller = createCaller(sluice)
  })

  checkMerges(() => caller, rows)

  test('a post again keeps all ids, and each document is stored once', async () => {
    const thread = someThread({
      quotes: [{ text: 'a', externalId: 'q1' }, { text: 'b' }, { text: 'b' }],
    })
    const answers = await Promise.all(Array.from({ length: 20 }, () => caller.post(thread)))
    const ids = answers
      .map(storedIn)
      .map(({ source, quotes }) => [source.id, ...quotes.map(({ id }) => id)])
    for (const some of ids) assert.deepEqual(some, ids[0])
    const sourceId = ids[0]?.[0] ?? ''
    assert.equal(
      await sluice.db.collection('sources').countDocuments({ externalId: thread.externalId }),
      1,
    )
    assert.equal(await sluice.db.collection('quotes').countDocuments({ sourceId }), 3)
    const created = answers.filter((reply) => storedIn(reply).source.outcome === 'created')
    assert.equal(created.length, 1)
  })
})
