import assert from 'node:assert/strict'
import type { SourcePage, ThreadAnswer } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import type { QuoteDocument } from '@sluice/store'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { problemIn, sourcePageIn, storedIn } from './support/read-reply.ts'
import { type Body, someThread } from './support/some-thread.ts'

/** A quote with an externalId, which serves as its text too. */
const quote = (name: string, fields: Body = {}) => ({ externalId: name, text: name, ...fields })
const textsOf = (quotes: SourcePage['quotes']) => quotes.map(({ text }) => text).join(' ')
const onDay = (day: number) => ({ createdAt: `2024-05-0${day}` })

describe('a stored source can be read', () => {
  let sluice: SharedSluice
  let caller: Caller
  let other: Caller
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    caller = createCaller(sluice)
    const { key } = await createKey(sluice.db, { tenant: 'globex', name: 'read-source' })
    other = createCaller({ url: sluice.url, key })
  })
  const post = async (changes: Body): Promise<ThreadAnswer> =>
    storedIn(await caller.post(someThread(changes)))
  const read = async (id: string, query = '') =>
    sourcePageIn(await caller.get(`/sources/${id}${query}`))
  const nameOf = ({ service, externalId }: SourcePage['source']) =>
    `/sources?${new URLSearchParams({ service, externalId })}`

  /** Reads all pages. `between` runs before each page but the first. */
  async function readAll(id: string, limit: number, between?: () => Promise<unknown>) {
    const pages = [await read(id, `?limit=${limit}`)]
    for (let next = pages[0]?.next; next !== undefined; next = pages.at(-1)?.next) {
      await between?.()
      pages.push(await read(id, `?limit=${limit}&after=${next}`))
    }
    return pages
  }

  /** Gives the quotes these positions, by their texts. */
  async function position(id: string, positions: Record<string, number>): Promise<void> {
    const quotes = sluice.db.collection<QuoteDocument>('quotes')
    for (const [text, index] of Object.entries(positions)) {
      const position = `1714521600000000.${String(index).padStart(6, '0')}`
      await quotes.updateOne({ sourceId: id, text }, { $set: { position } })
    }
  }

  test('by its id and by its name, as the answer to its POST, without outcomes', async () => {
    const posted = await post({
      externalId: 'a b/ü+1',
      description: 'About keyboards',
      upVotes: 5,
      quotes: [
        quote('a', { speaker: 'ada', createdAt: '2024-05-01' }),
        quote('b', { replyingTo: 'a', downVotes: 2 }),
      ],
    })
    const { outcome: _, ...source } = posted.source
    const quotes = posted.quotes.map(({ outcome: _, ...fields }) => fields)
    const page = await read(source.id)
    assert.deepEqual(page.source, source)
    assert.deepEqual(
      new Set(page.quotes.map(({ position: _, ...fields }) => fields)),
      new Set(quotes),
    )
    assert.deepEqual(sourcePageIn(await caller.get(nameOf(source))), page)
  })

  test('fields that other tools add to its documents are not shown', async () => {
    const { source } = await post({})
    await sluice.db
      .collection<{ _id: string }>('sources')
      .updateOne({ _id: source.id }, { $set: { vector: [1] } })
    await sluice.db
      .collection('quotes')
      .updateOne({ sourceId: source.id }, { $set: { vector: [1] } })
    await read(source.id)
    assert.doesNotMatch(
      (await caller.get(`/sources/${source.id}`)).text,
      /vector|meta|tenant|sourceId/,
    )
  })

  test('without its quotes in a look-up of many, in the order of the look-up', async () => {
    const sources = []
    for (const externalId of ['l-1', 'l-2', 'l-3'])
      sources.push((await post({ externalId })).source)
    const headers = { 'content-type': 'application/json' }
    const lookUp = async (from: Caller, body: unknown) => {
      const { text, ...reply } = await from.send('/sources:lookup', {
        method: 'POST',
        headers,
        body,
      })
      return { ...reply, text, json: JSON.parse(text) }
    }
    const names = { service: 'slack', externalIds: ['l-3', 'none', 'l-1', 'l-3', 'l-2'] }
    const found = await lookUp(caller, names)
    const [one, two, three] = sources.map(({ outcome: _, ...source }) => source)
    assert.deepEqual([found.status, found.json], [200, { sources: [three, one, two] }])
    assert.deepEqual((await lookUp(other, names)).json, { sources: [] })
    const tooMany = { service: 'slack', externalIds: Array(1_001).fill('x') }
    for (const body of [[], { ...names, extra: 1 }, { externalIds: [] }, tooMany])
      problemIn(await lookUp(caller, body), 400, 'request_invalid')
  })

  test('in shorter pages while the quota of the key is used up, whatever of a source is long', async () => {
    const limits = { quotesPerSecond: 1, burstQuotes: 1 }
    const { key } = await createKey(sluice.db, { tenant: sluice.tenant, name: 'used up', limits })
    const usedUp = createCaller({ url: sluice.url, key })
    const speaker = '🎹'.repeat(2_000)
    const quotes = Array.from({ length: 20 }, (_, at) => quote(`q${at}`, { speaker }))
    const { source } = storedIn(await usedUp.post(someThread({ quotes })))
    const names = Array.from({ length: 10 }, (_, at) => `long-${at}`)
    for (const externalId of names) await post({ externalId, description: 'd'.repeat(20_000) })

    assert.equal((await read(source.id)).quotes.length, 20)
    const page = sourcePageIn(await usedUp.get(`/sources/${source.id}`))
    assert.equal(page.quotes.length, 17)
    const next = sourcePageIn(await usedUp.get(`/sources/${source.id}?after=${page.next}`))
    assert.equal(textsOf(next.quotes), 'q17 q18 q19')
    async function lookUp(from: Caller, externalIds: readonly string[]) {
      const headers = { 'content-type': 'application/json' }
      const reply = await from.send('/sources:lookup', {
        method: 'POST',
        headers,
        body: { service: 'slack', externalIds },
      })
      const { sources, rest }: { sources: { externalId: string }[]; rest?: string[] } = JSON.parse(
        reply.text,
      )
      return { found: sources.map(({ externalId }) => externalId), rest }
    }
    assert.deepEqual(await lookUp(caller, names), { found: names, rest: undefined })
    const { found, rest = [] } = await lookUp(usedUp, names)
    assert.deepEqual([found.length, new Set([...found, ...rest])], [4, new Set(names)])
    assert.deepEqual((await lookUp(usedUp, ['none', ...rest.slice(-3)])).rest, undefined)
  })

  test('by its own tenant only; to others it is as a source that never existed', async () => {
    const { source } = await post({})
    const { key } = await createKey(sluice.db, { tenant: sluice.tenant, name: 'second' })
    sourcePageIn(await createCaller({ url: sluice.url, key }).get(`/sources/${source.id}`))
    const bareOf = ({ instance: _, requestId: __, ...rest }: Body) => rest
    const foreign = problemIn(await other.get(`/sources/${source.id}`), 404, 'source_unknown')
    for (const path of [`/sources/${'x'.repeat(24)}`, '/sources/1', '/sources/%00', nameOf(source)])
      assert.deepEqual(
        bareOf(problemIn(await other.get(path), 404, 'source_unknown')),
        bareOf(foreign),
        path,
      )
    problemIn(
      await createCaller({ url: sluice.url }).get(`/sources/${source.id}`),
      403,
      'api_key_invalid',
    )
    const operator = await createKey(sluice.db, { role: 'operator', name: 'reads a source' })
    problemIn(
      await createCaller({ ...sluice, ...operator }).get(nameOf(source)),
      403,
      'importer_only',
    )
  })

  test('in the order in which its messages were given first, although later posts have another order', async () => {
    const thread = someThread({ quotes: [quote('c'), quote('b'), quote('a')] })
    const { source } = storedIn(await caller.post(thread))
    storedIn(await caller.post({ ...thread, quotes: [quote('d'), quote('a'), quote('b')] }))
    assert.equal(textsOf((await read(source.id)).quotes), 'c b a d')
  })

  test('sorted by date, and by position where dates are equal', async () => {
    const { source } = await post({
      quotes: [
        quote('d', onDay(3)),
        quote('b', onDay(2)),
        quote('c', onDay(2)),
        quote('a', onDay(1)),
      ],
    })
    await position(source.id, { d: 0, b: 1, c: 2, a: 3 })
    for (const limit of [1, 2, 3, 100])
      assert.equal(
        (await readAll(source.id, limit)).map(({ quotes }) => textsOf(quotes)).join(' '),
        'a b c d',
      )
  })

  test('sorted by position if a quote has no date', async () => {
    const { source } = await post({
      quotes: [quote('b'), quote('c', onDay(2)), quote('d', onDay(1)), quote('a')],
    })
    await position(source.id, { a: 0, b: 1, c: 2, d: 3 })
    for (const limit of [1, 2, 3, 100])
      assert.equal(
        (await readAll(source.id, limit)).map(({ quotes }) => textsOf(quotes)).join(' '),
        'a b c d',
      )
  })

  test('in pages that show each quote once, although all dates are equal', async () => {
    const names = Array.from({ length: 25 }, (_, index) => `q${index}`)
    for (const date of [onDay(1), {}]) {
      const { source } = await post({ quotes: names.map((name) => quote(name, date)) })
      const pages = await readAll(source.id, 10)
      assert.deepEqual(
        pages.map(({ quotes }) => quotes.length),
        [10, 10, 5],
      )
      assert.deepEqual(
        new Set(pages.flatMap(({ quotes }) => quotes.map(({ text }) => text))),
        new Set(names),
      )
    }
  })

  test('in pages while quotes are added: those after the place are shown, and none twice', async () => {
    const thread = someThread()
    const { source } = storedIn(
      await caller.post({
        ...thread,
        quotes: [1, 3, 5, 7].map((day) => quote(`${day}`, onDay(day))),
      }),
    )
    const added = [quote('2', onDay(2)), quote('6', onDay(6)), quote('8', {})]
    const add = async () => storedIn(await caller.post({ ...thread, quotes: added.splice(0, 1) }))
    const pages = await readAll(source.id, 1, () => (added.length > 0 ? add() : Promise.resolve()))
    assert.equal(pages.map(({ quotes }) => textsOf(quotes)).join(' '), '1 2 3 5 6 7')
  })

  test('without quotes', async () => {
    const { source } = await post({ quotes: [] })
    const { quotes, ...rest } = await read(source.id)
    assert.deepEqual([quotes, Object.keys(rest)], [[], ['source']])
  })

  test('the last page has no next, although it is full', async () => {
    const { source } = await post({ quotes: [quote('a'), quote('b')] })
    assert.equal((await read(source.id, '?limit=2')).next, undefined)
    assert.ok((await read(source.id, '?limit=1')).next)
  })

  test('a page with long texts ends before its limit', async () => {
    const texts = Array.from({ length: 45 }, (_, index) => String(index).padEnd(100_000, '.'))
    const thread = someThread()
    let id = ''
    // One post of all could exceed the two seconds that Redis has, on a busy machine.
    for (let from = 0; from < texts.length; from += 5) {
      const quotes = texts.slice(from, from + 5).map((text) => ({ text }))
      id = (await post({ ...thread, quotes })).source.id
    }
    const pages = await readAll(id, 1_000)
    assert.ok(pages.length > 1, 'one page has all')
    assert.deepEqual(
      new Set(pages.flatMap(({ quotes }) => quotes.map(({ text }) => text))),
      new Set(texts),
    )
  })

  test('HEAD answers as GET does, without a body', async () => {
    const { source } = await post({})
    const { status, text, headers } = await caller.send(`/sources/${source.id}`, { method: 'HEAD' })
    assert.deepEqual([status, text], [200, ''])
    assert.ok(Number(headers.get('content-length')) > 100)
    assert.equal((await other.send(`/sources/${source.id}`, { method: 'HEAD' })).status, 404)
  })

  test('a read writes nothing', async () => {
    const { source } = await post({})
    const stored = () =>
      sluice.db.collection<{ _id: string }>('sources').findOne({ _id: source.id })
    const before = await stored()
    await read(source.id)
    assert.deepEqual(await stored(), before)
  })

  describe('a parameter that is wrong is a 400 that names it', () => {
    const rows: [query: string, parameter: string, message: RegExp][] = [
      ['?limit=0', 'limit', /from 1 to 1000/],
      ['?limit=1001', 'limit', /from 1 to 1000/],
      ['?limit=', 'limit', /from 1 to 1000/],
      ['?limit=1.5', 'limit', /from 1 to 1000/],
      ['?limit=1&limit=1', 'limit', /only once/],
      ['?after=', 'after', /`next` of an earlier page/],
      ['?after=~~', 'after', /`next` of an earlier page/],
      [`?after=~${'0'.repeat(16)}.000000~${'x'.repeat(48)}`, 'after', /of this source/],
      ['?page=2', 'page', /not a known field/],
      ['?service=slack', 'service', /not a known field/],
    ]
    for (const [query, parameter, message] of rows) {
      test(query, async () => {
        const { source } = await post({})
        const { errors } = problemIn(
          await caller.get(`/sources/${source.id}${query}`),
          400,
          'request_invalid',
        )
        assert.equal(errors?.[0]?.pointer, `/${parameter}`)
        assert.match(errors?.[0]?.message ?? '', message)
      })
    }

    const named: [query: string, parameters: string[]][] = [
      ['', ['externalId']],
      ['?service=slack', ['externalId']],
      ['?externalId=1', ['service']],
      ['?service=slack&externalId=1&since=2024-05-01', ['since']],
      ['?service=slack&externalId=%20', ['externalId']],
      ['?service=slak&externalId=1', ['service']],
      ['?service=slack&service=x&externalId=1', ['service']],
      [`?service=slack&externalId=${'x'.repeat(513)}`, ['externalId']],
      ['?service=slack&externalId=1&limit=x', ['limit']],
    ]
    for (const [query, parameters] of named) {
      test(`/sources${query.slice(0, 60)}`, async () => {
        const { errors = [] } = problemIn(
          await caller.get(`/sources${query}`),
          400,
          'request_invalid',
        )
        assert.deepEqual(
          errors.map(({ pointer }) => pointer),
          parameters.map((name) => `/${name}`),
        )
      })
    }
  })
})
