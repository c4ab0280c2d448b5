import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { type TestContext, test } from 'vitest'
import type { KeyRecord } from './key.ts'
import { KeyLookUps } from './key-look-ups.ts'

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
  const lookUps = new KeyLookUps({ findKeys, monotonic: () => 7, onError, retryMs: 1, ...options })
  t.onTestFinished(() => lookUps.close())
  return { lookUps, queries, errors, nextQuery: () => once(signals, 'query') }
}

const record = (id: string): KeyRecord => ({
  id,
  role: 'importer',
  tenant: 't',
  name: 'n',
  createdAt: new Date(0),
})

test('look-ups that arrive during a query share the next one, each id once', async (t) => {
  const { lookUps, queries } = heldStore(t)
  const first = lookUps.lookUp('a')
  const gathered = ['b', 'c', 'b'].map((id) => lookUps.lookUp(id))
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
  const { lookUps, queries } = heldStore(t, { perQuery: 2 })
  void lookUps.lookUp('guess-0')
  for (const guess of ['guess-1', 'guess-2']) void lookUps.lookUp(guess)
  void lookUps.refresh('good')
  queries[0]?.answer([])
  await new Promise(setImmediate)
  assert.deepEqual(queries[1]?.ids, ['good', 'guess-1'])
})

test('beyond the bound guesses fail at once, known keys do not', async (t) => {
  const { lookUps, queries } = heldStore(t, { maxWaiting: 1 })
  void lookUps.lookUp('running')
  void lookUps.lookUp('waiting')
  assert.equal(await lookUps.lookUp('too much'), 'failed')
  const good = lookUps.refresh('good')
  queries[0]?.answer([])
  await new Promise(setImmediate)
  queries[1]?.answer([record('good')])
  assert.deepEqual(await good, { record: record('good'), askedAt: 7 })
})

test('a failure fails all waiting look-ups and all later ones, until a probe finds that the store answers', async (t) => {
  const { lookUps, queries, errors, nextQuery } = heldStore(t)
  const running = lookUps.lookUp('a')
  const waiting = [lookUps.lookUp('b'), lookUps.refresh('c')]
  const firstProbe = nextQuery()
  queries[0]?.refuse()
  assert.deepEqual(await Promise.all([running, ...waiting]), ['failed', 'failed', 'failed'])
  assert.ok(lookUps.failing)
  assert.deepEqual([await lookUps.lookUp('d'), await lookUps.refresh('e')], ['failed', 'failed'])

  await firstProbe
  assert.deepEqual(queries[1]?.ids, [])
  const secondProbe = nextQuery()
  queries[1]?.refuse()
  await secondProbe
  assert.ok(lookUps.failing)
  queries[2]?.answer([])
  await new Promise(setImmediate)
  assert.equal(lookUps.failing, false)
  assert.equal(errors.length, 1)
  assert.equal(queries.length, 3)
})
