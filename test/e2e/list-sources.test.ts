import assert from 'node:assert/strict'
import type { SourceList, ThreadAnswer } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import type { SourceDocument } from '@sluice/store'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { mongodbCan } from '../support/mongodb-can.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { problemIn, sourceListIn, sourcePageIn, storedIn } from './support/read-reply.ts'
import { type Body, someThread } from './support/some-thread.ts'

describe("a tenant's sources can be listed", () => {
  let sluice: TestSluice
  beforeSuite(async (t) => {
    sluice = await startSluice(t, { settings: { LIST_SOURCES: 'on' } })
  })

  /** A caller of a new tenant. */
  async function newTenant(tenant: string): Promise<Caller> {
    const { key } = await createKey(sluice.db, { tenant, name: 'test' })
    return createCaller({ url: sluice.url, key })
  }
  const post = async (caller: Caller, changes: Body): Promise<ThreadAnswer['source']> =>
    storedIn(await caller.post(someThread(changes))).source
  async function list(caller: Caller, query: Record<string, string> = {}): Promise<SourceList> {
    return sourceListIn(await caller.get(`/sources?${new URLSearchParams(query)}`))
  }
  async function readAll(
    caller: Caller,
    query: Record<string, string>,
  ): Promise<SourceList['sources'][]> {
    const pages = []
    for (let after: string | undefined = ''; after !== undefined; ) {
      const { sources, next }: SourceList = await list(caller, {
        ...query,
        ...(after !== '' && { after }),
      })
      pages.push(sources)
      after = next
    }
    return pages
  }
  const namesOf = (sources: SourceList['sources']) =>
    sources.map(({ externalId }) => externalId).join(' ')

  test('newest first, by the first request for each, as they are read one by one', async () => {
    const caller = await newTenant('newest')
    await post(caller, { externalId: 'a', description: 'The first' })
    await post(caller, { externalId: 'b', createdAt: '1999-01-01' })
    await post(caller, { externalId: 'c' })
    await post(caller, { externalId: 'a', title: 'Another title' })
    const { sources, next } = await list(caller)
    assert.deepEqual([namesOf(sources), next], ['c b a', undefined])
    for (const { quoteCount, acceptedAt, ...source } of sources) {
      assert.deepEqual(sourcePageIn(await caller.get(`/sources/${source.id}`)).source, source)
      assert.equal(quoteCount, 1)
      assert.ok(Math.abs(Date.parse(acceptedAt) - Date.now()) < 60_000, acceptedAt)
    }
  })

  test('none of another tenant, although its name begins with this one', async () => {
    const [short, long] = [await newTenant('t'), await newTenant('t/0')]
    await post(short, { externalId: 'short' })
    await post(long, { externalId: 'long' })
    assert.equal(namesOf((await list(short)).sources), 'short')
    assert.equal(namesOf((await list(long)).sources), 'long')
    assert.deepEqual(await list(await newTenant('empty')), { sources: [] })
  })

  test('in pages that show each once, although all were accepted at one moment', async () => {
    const caller = await newTenant('pages')
    const names = Array.from({ length: 7 }, (_, at) => `s${at}`)
    const lines = names.map((externalId) => JSON.stringify(someThread({ externalId }))).join('\n')
    await caller.postImport(lines)
    const pages = await readAll(caller, { limit: '3' })
    assert.deepEqual(
      pages.map(({ length }) => length),
      [3, 3, 1],
    )
    assert.deepEqual(new Set(pages.flat().map(({ externalId }) => externalId)), new Set(names))
    const order = pages.flat().map(({ acceptedAt, id }) => `${acceptedAt} ${id}`)
    assert.deepEqual(order, order.toSorted().reverse())
    assert.equal((await list(caller, { limit: '7' })).next, undefined)
  })

  test('those of a service, and those accepted since a date', async () => {
    const caller = await newTenant('filters')
    for (const [at, service] of ['slack', 'zendesk', 'slack', 'email'].entries())
      await post(caller, { service, externalId: `${at}` })
    const all = (await list(caller)).sources
    assert.equal(namesOf((await list(caller, { service: 'slack' })).sources), '2 0')
    assert.equal(namesOf((await readAll(caller, { service: 'slack', limit: '1' })).flat()), '2 0')
    const since = all[1]?.acceptedAt ?? ''
    const expected = all.filter(({ acceptedAt }) => acceptedAt >= since)
    assert.deepEqual((await list(caller, { since })).sources, expected)
    assert.deepEqual((await list(caller, { since: '2999-01-01' })).sources, [])
  })

  test('a cursor of another tenant or another filter is refused', async () => {
    const [caller, other] = [await newTenant('cursors'), await newTenant('others')]
    for (const externalId of ['a', 'b'])
      await Promise.all([caller, other].map((each) => post(each, { externalId })))
    const { next = '' } = await list(caller, { limit: '1' })
    assert.equal((await list(caller, { after: next, limit: '9' })).sources.length, 1)
    const refused = async (from: Caller, query: Record<string, string>) => {
      const problem = problemIn(
        await from.get(`/sources?${new URLSearchParams(query)}`),
        400,
        'request_invalid',
      )
      return problem.errors?.map(({ pointer, message }) => `${pointer} ${message}`).join()
    }
    const foreign = /^\/after after must be `next` of an earlier page of this list/
    const unreadable = /^\/after after must be `next` of an earlier page\.$/
    assert.match((await refused(other, { after: next })) ?? '', foreign)
    for (const query of [{ service: 'slack' }, { since: '2020-01-01' }])
      assert.match((await refused(caller, { after: next, ...query })) ?? '', foreign)
    for (const after of ['x', `${next}x`])
      assert.match((await refused(caller, { after })) ?? '', unreadable)
  })

  test('an invalid parameter is a 400 that names it and its bound', async () => {
    const caller = await newTenant('invalid')
    const messageOf = async (query: string) =>
      problemIn(await caller.get(`/sources?${query}`), 400, 'request_invalid').errors?.[0]?.message
    assert.equal(await messageOf('limit=0'), 'limit must be a whole number from 1 to 1000.')
    assert.equal(await messageOf('limit=1001'), 'limit must be a whole number from 1 to 1000.')
    assert.match(
      (await messageOf('since=yesterday')) ?? '',
      /^since must be a date or date-time of ISO 8601/,
    )
    assert.match((await messageOf('service=telefax')) ?? '', /^service must be one of x, zendesk/)
    assert.equal(await messageOf('externalId=a'), 'service is required beside externalId.')
    assert.equal(
      await messageOf('service=slack&externalId=a&since=2024-05-01'),
      'since is for a list: leave out since, or externalId.',
    )
    assert.equal(await messageOf('until=2024-05-01'), 'until is not a known field.')
  })

  test('by the index of one field, also beside 2,000 sources of another tenant', async (t) => {
    t.skip(!mongodbCan.sortByIndex)
    const caller = await newTenant('indexed')
    await post(caller, { externalId: 'own' })
    const sources = sluice.db.collection<SourceDocument>('sources')
    const [own] = await sources.find({ externalId: 'own' }).toArray()
    assert.ok(own)
    const others = Array.from({ length: 2_000 }, (_, at) => {
      const _id = `other-${at}`.padEnd(24, '-')
      return {
        ...own,
        _id,
        tenant: 'big',
        meta: { ...own.meta, listKey: `zzzz/${String(at).padStart(15, '0')}/${_id}` },
      }
    })
    await sources.insertMany(others)
    assert.equal(namesOf((await list(caller)).sources), 'own')
    const { listKey } = own.meta
    const page = sources.find({ 'meta.listKey': { $gte: listKey.slice(0, 25), $lte: listKey } })
    const plan = JSON.stringify(
      await page.sort({ 'meta.listKey': -1 }).limit(2).explain('queryPlanner'),
    )
    assert.match(plan, /"IXSCAN","keyPattern":\{"meta.listKey":1\}/)
    assert.doesNotMatch(plan, /"(SORT|COLLSCAN)"/)
  })
})
