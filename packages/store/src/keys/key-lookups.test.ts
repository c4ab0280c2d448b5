import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { type TestContext, test } from 'vitest'
import type { KeyRecord } from './key.ts'
import { KeyLookups } from './key-lookups.ts'

/** A store whose queries wait until the test answers or refuses them. */
function heldStore(t: TestContext, options: { maxWaiting?: number; perQuery?: number } = {}) {
  const queries: { ids: readonly string[]; answer: (records: KeyRecord[]) => void; refuse: () => void }[] = []
  const signals = new EventEmitter()
  const findKeys = (ids: readonly string[]) => {
    const { promise, resolve, reject } = Promise.withResolvers<KeyRecord[]>()
    queries.push({ ids, answer: resolve, refuse: () => reject(new Error('away')) })
    signals.emit('query')
    return promise
  }
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  const lookups = new KeyLookups({ findKeys, monotonic: () => 7, onError, retryMs: 1, ...options })
  t.onTestFinished(() => lookups.close())
  return { lookups, queries, errors, nextQuery: () => once(signals, 'query') }
}

const record = (id: string): KeyRecord => ({
  id,
  role: 'importer',
  tenant: 't',
  name: 'n',
  createdAt: new Date(0),
})

test('lookups that arrive during a query share the next one, each id once', async (t) => {
  const { lookups, queries } = heldStore(t)
  const first = lookups.lookUp('a')
  const gathered = ['b', 'c', 'b'].map((id) => lookups.lookUp(id))
  assert.deepEqual(
    queries.map(({ ids }) => ids),
    [['a']],
  )
  queries[0]?.answer([record('a')])
  assert.deepEqual(await first, { record: record('a'), askedAt: 7 })
  await new Promise(setImmediate)
  assert.deepEqual(queries[1]?.ids, ['b', 'c'])
  queries[1]?.answer([record('c')])
  assert.deepEqual(await Promise.all(gathered), [
    { record: undefined, askedAt: 7 },
    { record: record('c'), askedAt: 7 },
    { record: undefined, askedAt: 7 },
  ])
})

test('a query has no more ids than allowed, and known keys go before guesses', async (t) => {
  const { lookups, queries } = heldStore(t, { perQuery: 2 })
  void lookups.lookUp('guess-0')
  for (const guess of ['guess-1', 'guess-2']) void lookups.lookUp(guess)
  void lookups.refresh('good')
  queries[0]?.answer([])
  await new Promise(setImmediate)
  assert.deepEqual(queries[1]?.ids, ['good', 'guess-1'])
})

test('beyond the bound guesses fail at once, known keys do not', async (t) => {
  const { lookups, queries } = heldStore(t, { maxWaiting: 1 })
  void lookups.lookUp('running')
  void lookups.lookUp('waiting')
  assert.equal(await lookups.lookUp('too much'), 'failed')
  const good = lookups.refresh('good')
  queries[0]?.answer([])
  await new Promise(setImmediate)
  queries[1]?.answer([record('good')])
  assert.deepEqual(await good, { record: record('good'), askedAt: 7 })
})

test('a failure fails all waiting lookups and all later ones, until a probe finds that the store answers', async (t) => {
  const { lookups, queries, errors, nextQuery } = heldStore(t)
  const running = lookups.lookUp('a')
  const waiting = [lookups.lookUp('b'), lookups.refresh('c')]
  const firstProbe = nextQuery()
  queries[0]?.refuse()
  assert.deepEqual(await Promise.all([running, ...waiting]), ['failed', 'failed', 'failed'])
  assert.ok(lookups.failing)
  assert.deepEqual([await lookups.lookUp('d'), await lookups.refresh('e')], ['failed', 'failed'])

  await firstProbe
  assert.deepEqual(queries[1]?.ids, [])
  const secondProbe = nextQuery()
  queries[1]?.refuse()
  await secondProbe
  assert.ok(lookups.failing)
  queries[2]?.answer([])
  await new Promise(setImmediate)
  assert.equal(lookups.failing, false)
  assert.equal(errors.length, 1)
  assert.equal(queries.length, 3)
})
