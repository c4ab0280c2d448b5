import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

describe('tenants are isolated', () => {
  let sluice: SharedSluice
  let acme: Caller
  let globex: Caller
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    acme = await callerOf('acme')
    globex = await callerOf('globex')
  })
  const keyOf = async (tenant: string) =>
    (await createKey(sluice.db, { tenant, name: 'tenants' })).key
  const callerOf = async (tenant: string) =>
    createCaller({ url: sluice.url, key: await keyOf(tenant) })

  test('one externalId of two tenants makes two sources', async () => {
    const thread = someThread({ quotes: [{ text: 'a', externalId: 'q' }, { text: 'b' }] })
    const ours = storedIn(
      await acme.post({ ...thread, description: 'secret', url: 'ours', upVotes: 7 }),
    )
    const theirs = storedIn(await globex.post(thread))
    assert.deepEqual(
      [theirs.source.outcome, ...theirs.quotes.map(({ outcome }) => outcome)],
      ['created', 'created', 'created'],
    )
    assert.equal(theirs.source.description, null)
    assert.ok(!('url' in theirs.source) && !('upVotes' in theirs.source))
    const ids = [ours, theirs].flatMap(({ source, quotes }) => [
      source.id,
      ...quotes.map(({ id }) => id),
    ])
    assert.equal(new Set(ids).size, 6)
  })

  test("one tenant's posts change nothing of the other's", async () => {
    const thread = someThread({ quotes: [{ text: 'one two', externalId: 'q', speaker: 'ada' }] })
    storedIn(await acme.post(thread))
    storedIn(
      await globex.post({
        ...thread,
        title: 'theirs',
        quotes: [{ text: 'three', externalId: 'q' }, { text: 'more' }],
      }),
    )
    const { source, quotes } = storedIn(await acme.post(thread))
    assert.deepEqual(
      [source.outcome, quotes[0]?.outcome, source.wordCount],
      ['unchanged', 'unchanged', 2],
    )
  })

  test('a reply does not find a quote of another tenant, and its answer reveals nothing', async () => {
    const thread = someThread()
    storedIn(await acme.post({ ...thread, quotes: [{ text: 'a', externalId: 'parent' }] }))
    const reply = { ...thread, quotes: [{ text: 'b', externalId: 'child', replyingTo: 'parent' }] }
    const [theirs, ours] = [storedIn(await globex.post(reply)), storedIn(await acme.post(reply))]
    assert.deepEqual(theirs.quotes[0]?.replyingTo, ours.quotes[0]?.replyingTo)
    assert.equal(theirs.source.wordCount, 1)
  })

  test('tenants are isolated although their names join with a service or an id to the same text', async () => {
    const callers = [await callerOf('a'), await callerOf('a:x'), await callerOf('a1')]
    const threads = [
      { service: 'x', externalId: 'x:1' },
      { service: 'x', externalId: '1' },
      { service: 'x', externalId: 'x1' },
    ]
    for (const caller of callers) {
      for (const thread of threads)
        assert.equal(storedIn(await caller.post(someThread(thread))).source.outcome, 'created')
    }
  })

  test('one externalId of two services makes two sources', async () => {
    const thread = someThread({ service: 'slack' })
    const [first, second] = [
      storedIn(await acme.post(thread)),
      storedIn(await acme.post({ ...thread, service: 'email' })),
    ]
    assert.equal(second.source.outcome, 'created')
    assert.notEqual(first.source.id, second.source.id)
  })

  test('one quote externalId of two sources makes two quotes', async () => {
    const post = async () =>
      storedIn(await acme.post(someThread({ quotes: [{ text: 'a', externalId: 'q' }] }))).quotes[0]
    const [first, second] = [await post(), await post()]
    assert.equal(second?.outcome, 'created')
    assert.notEqual(first?.id, second?.id)
  })
})
