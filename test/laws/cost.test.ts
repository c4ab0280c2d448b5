import assert from 'node:assert/strict'
import {
  createBatchStore,
  type DeleteRequest,
  type PostRequest,
  processRuntime,
  type Runtime,
} from '@sluice/store'
import { sourceIdOf } from '@sluice/store/ids'
import type { Document } from 'mongodb'
import { beforeAll, describe, it } from 'vitest'
import { openStore } from './support/open-store.ts'

/** The process raises its watermark only when it must, not after a time. */
const withoutTimer: Runtime = { ...processRuntime, delay: () => new Promise(() => {}) }

let places = 0

function request(externalId: string, texts: string[]): PostRequest {
  places += 1
  const quotes = texts.map((text, at) => ({ externalId: `q${at}`, text }))
  const source = { service: 'slack' as const, externalId, title: externalId }
  return {
    id: `r${places}`,
    tenant: 'acme',
    stamp: places,
    redelivered: false,
    thread: { source, quotes },
  }
}

describe('what a batch costs MongoDB', () => {
  const { client, sources, commands: storeCommands } = openStore('cost', { monitorCommands: true })
  const worker = createBatchStore(storeCommands, withoutTimer)
  let commands: string[] = []
  let updates: Document[] = []

  beforeAll(async () => {
    await worker.store([request('known', ['one'])])
    await worker.settle()
    client.on('commandStarted', ({ commandName, command }) => {
      commands.push(`${commandName} ${command[commandName]}`)
      if (command.update !== 'writers') updates.push(...(command.updates ?? []))
    })
  })

  /** Returns the answers, and the commands before and after them. */
  async function storing(requests: PostRequest[], by = worker) {
    commands = []
    updates = []
    const answers = await by.store(requests)
    const needed = [...commands]
    await by.settle()
    return { answers, needed, after: commands.slice(needed.length) }
  }

  /** Stores a known thread, so that the next batch is not assumed to be new. */
  const storeAKnownThread = () => storing([request('known', ['one'])])

  it('a batch of new threads costs one read and two inserts, and a read of versions and a small update after the answer', async () => {
    const batch = Array.from({ length: 20 }, (_, at) =>
      request(`new-${at}`, ['one', 'two', 'three']),
    )
    await storeAKnownThread()
    const { needed, after } = await storing(batch)
    assert.deepEqual(needed, ['find sources', 'insert sources', 'insert quotes'])
    assert.deepEqual(after, ['find sources', 'update writers'])
  })

  it('after a batch of new threads the next batch is not read; only its known threads are read after a refused insert', async () => {
    await storing([request('burst-1', ['one'])])
    assert.deepEqual((await storing([request('burst-2', ['one'])])).needed, [
      'insert sources',
      'insert quotes',
    ])
    const [known, fresh] = [request('burst-1', ['one', 'two']), request('burst-3', ['one'])]
    const { answers, needed } = await storing([known, fresh])
    assert.deepEqual(needed.slice(0, 4), [
      'insert sources',
      'insert quotes',
      'find sources',
      'find quotes',
    ])
    assert.deepEqual(
      [known, fresh].map(({ id }) => answers.get(id)?.source.outcome),
      ['updated', 'created'],
    )
    assert.equal((await storing([request('burst-4', ['one'])])).needed[0], 'find sources')
  })

  it('a repost of a whole thread that changes nothing costs one write, to its source', async () => {
    const texts = Array.from({ length: 30 }, (_, at) => `text ${at}`)
    await storing([request('whole', texts)])
    await storeAKnownThread()
    const again = request('whole', texts)
    const { answers, needed, after } = await storing([again])
    assert.equal(answers.get(again.id)?.source.outcome, 'unchanged')
    assert.deepEqual(needed, ['find sources', 'find quotes', 'update sources'])
    assert.deepEqual(after, [])
  })

  it('a repost with the digest of the last request costs the same write, and reads no quotes', async () => {
    const once = { ...request('digested', ['one', 'two']), digest: 'its digest' }
    await storing([once])
    await storeAKnownThread()
    const again = { ...request('digested', ['one', 'two']), digest: 'its digest' }
    const { answers, needed } = await storing([again])
    const answer = answers.get(again.id)
    assert.equal(answer?.source.outcome, 'unchanged')
    assert.deepEqual(
      answer?.quotes.map(({ text, outcome }) => [text, outcome]),
      [
        ['one', 'unchanged'],
        ['two', 'unchanged'],
      ],
    )
    assert.deepEqual(needed, ['find sources', 'update sources'])
    const append = request('digested', [])
    append.thread.quotes = [{ externalId: 'q-last', text: 'one more' }]
    await storing([append])
    const third = await storing([{ ...request('digested', ['one', 'two']), digest: 'its digest' }])
    assert.equal(third.needed[1], 'find quotes', 'another request was stored since')
  })

  it('reposts of many whole threads under one stamp, which were stored together, cost one update, of nothing but stamps', async () => {
    const threads = Array.from({ length: 20 }, (_, at) => request(`together-${at}`, ['one', 'two']))
    const post = () => {
      places += 1
      return storing(
        threads.map((one) => ({
          ...one,
          id: `${one.id}-${places}`,
          stamp: places,
          digest: 'its digest',
        })),
      )
    }
    await post()
    await storeAKnownThread()
    const { answers } = await post()
    assert.deepEqual(
      new Set(Array.from(answers.values(), ({ source }) => source.outcome)),
      new Set(['unchanged']),
    )
    assert.deepEqual(
      updates.map(({ q, u, multi }) => [q._id.$in.length, Object.keys(u.$set), multi]),
      [[20, ['meta.version', 'meta.stamp', 'meta.cover'], true]],
    )
    const stored = await sources.find({ 'meta.digest': 'its digest', quoteCount: 2 }).toArray()
    assert.deepEqual(
      new Set(stored.map(({ meta }) => `${meta.stamp} ${meta.cover}`)),
      new Set([`${places} ${places}`]),
    )
  })

  it('a post of all quotes of a thread but one, and of a new one, costs one update for 25 quotes, of nothing but stamps', async () => {
    const texts = Array.from({ length: 62 }, (_, at) => `text ${at}`)
    await storing([request('window', texts.slice(0, 61))])
    await storeAKnownThread()
    const window = request('window', texts)
    window.thread.quotes.shift()
    const { answers, needed } = await storing([window])
    const { source, quotes = [] } = answers.get(window.id) ?? {}
    assert.equal(quotes.at(-1)?.outcome, 'created')
    assert.deepEqual(
      new Set(quotes.slice(0, -1).map(({ outcome }) => outcome)),
      new Set(['unchanged']),
    )
    assert.deepEqual(needed, [
      'find sources',
      'find quotes',
      'update sources',
      'insert quotes',
      'update quotes',
    ])
    const [, ...restamps] = updates
    const marks = ['meta.version', 'meta.stamp']
    assert.deepEqual(
      restamps.map(({ q, u, multi }) => [q._id.$in.length, q.sourceId, Object.keys(u.$set), multi]),
      [25, 25, 10].map((length) => [length, source?.id, marks, true]),
    )
  })

  it('an append to a long thread reads and writes only the quotes that it appends, and sums nothing', async () => {
    const texts = Array.from({ length: 500 }, (_, at) => `text ${at}`)
    await storing([request('long', texts)])
    await storeAKnownThread()
    const append = request('long', [])
    append.thread.quotes = [{ externalId: 'q-last', text: 'one more' }]
    const { answers, needed, after } = await storing([append])
    assert.equal(answers.get(append.id)?.source.wordCount, 1_002)
    assert.deepEqual(needed, ['find sources', 'find quotes', 'update sources', 'insert quotes'])
    assert.deepEqual(after, ['find sources', 'update writers'])
  })

  it('an append right after the first post raises the watermark first, and sums nothing', async () => {
    await storeAKnownThread()
    await worker.store([request('fresh', ['one'])])
    const append = request('fresh', [])
    append.thread.quotes = [{ externalId: 'q-last', text: 'one more' }]
    await worker.store([request('known', ['one'])])
    const { answers, needed } = await storing([append])
    assert.equal(answers.get(append.id)?.source.wordCount, 3)
    const settles = ['find sources', 'update writers']
    assert.deepEqual(needed, [
      'find sources',
      ...settles,
      'find quotes',
      'update sources',
      'insert quotes',
    ])
  })

  it('a redelivered request that is already stored costs two reads and no write', async () => {
    const once = request('twice', ['one', 'two'])
    await storing([once])
    const { answers, needed, after } = await storing([{ ...once, redelivered: true }])
    assert.equal(answers.get(once.id)?.source.outcome, 'created')
    assert.deepEqual([...needed, ...after], ['find sources', 'find quotes'])
  })

  it('a thread that another process stored costs one more read, of the watermark', async () => {
    const another = createBatchStore(storeCommands, withoutTimer)
    await another.store([request('known', ['one'])])
    await storing([request('elsewhere', ['one'])])
    const append = request('elsewhere', [])
    append.thread.quotes = [{ externalId: 'q-last', text: 'one more' }]
    const { needed } = await storing([append], another)
    assert.deepEqual(needed, [
      'find sources',
      'find writers',
      'find quotes',
      'update sources',
      'insert quotes',
    ])
  })

  it('a thread that another process is writing costs the same, and sums nothing', async () => {
    const another = createBatchStore(storeCommands, withoutTimer)
    await another.store([request('busy', ['one'])])
    await storeAKnownThread()
    const append = request('busy', [])
    append.thread.quotes = [{ externalId: 'q-last', text: 'one more' }]
    const { answers, needed, after } = await storing([append])
    assert.equal(answers.get(append.id)?.source.wordCount, 3)
    assert.deepEqual(needed, [
      'find sources',
      'find writers',
      'find quotes',
      'update sources',
      'insert quotes',
    ])
    assert.deepEqual(after, ['find sources', 'update writers'])
    await another.settle()
  })

  it('a thread that another process is summing costs two reads, and the request is not stored', async () => {
    await storing([request('summed', ['one'])])
    const token = {
      request: 'another',
      writer: 'another',
      batch: 1,
      since: new Date(),
      excludes: processRuntime.newId(),
    }
    await sources.updateOne({ externalId: 'summed' }, { $set: { 'meta.tokens': [token] } })
    await storeAKnownThread()
    const { answers, needed, after } = await storing([request('summed', ['one', 'two'])])
    assert.equal(answers.size, 0)
    assert.deepEqual([...needed, ...after], ['find sources', 'find writers'])
  })

  it('a redelivered request whose first process died before it raised its watermark costs one sum and three small writes', async () => {
    const once = request('interrupted', ['one', 'two'])
    await createBatchStore(storeCommands, withoutTimer).store([once])
    const { answers, needed, after } = await storing([{ ...once, redelivered: true }])
    assert.equal(answers.get(once.id)?.source.outcome, 'created')
    const sum = ['update sources', 'update sources', 'aggregate quotes', 'update sources']
    assert.deepEqual(needed, ['find sources', 'find writers', 'find quotes', ...sum])
    assert.deepEqual(after, ['update writers'])
  })

  it('a deletion of a thread costs two reads, four writes and a sum, and one of an absent thread a read and a write', async () => {
    await storing([request('deleted', ['one', 'two'])])
    const deletion = (externalId: string): DeleteRequest => {
      const { id, tenant, stamp, redelivered, thread } = request(externalId, [])
      const deletes = { sourceId: sourceIdOf(tenant, thread.source) }
      return { id, tenant, stamp, redelivered, deletes }
    }
    commands = []
    await worker.store([deletion('deleted')])
    assert.deepEqual(
      commands.filter((command) => command !== 'find writers'),
      [
        'find sources',
        'update sources',
        'update sources',
        'find quotes',
        'delete quotes',
        'aggregate quotes',
        'update sources',
      ],
    )
    commands = []
    await worker.store([deletion('absent')])
    assert.deepEqual(commands, ['find sources', 'insert sources'])
  })
})
