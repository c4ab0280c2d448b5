import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { type TestContext, test } from 'vitest'
import type { KeyRecord } from './key.ts'
import { createKeyLookups } from './key-lookups.ts'

/** A store whose queries wait until the test answers or refuses them. */
function heldStore(t: TestContext) {
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
  const lookups = createKeyLookups({ findKeys, onError, retryMs: 1 })
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

test('lookups that arrive during a query share the next one', async (t) => {
  const { lookups, queries } = heldStore(t)
  const first = lookups.lookUp('a')
  const gathered = ['b', 'c'].map((id) => lookups.lookUp(id))
  assert.deepEqual(
    queries.map(({ ids }) => ids),
    [['a']],
  )
  queries[0]?.answer([record('a')])
  assert.deepEqual(await first, record('a'))
  await new Promise(setImmediate)
  assert.deepEqual(queries[1]?.ids, ['b', 'c'])
  queries[1]?.answer([record('c')])
  assert.deepEqual(await Promise.all(gathered), [undefined, record('c')])
})

test('a query has at most 200 ids', async (t) => {
  const { lookups, queries } = heldStore(t)
  const first = lookups.lookUp('first')
  const others = Array.from({ length: 201 }, (_, at) => lookups.lookUp(`other ${at}`))
  queries[0]?.answer([])
  await first
  await new Promise(setImmediate)
  assert.equal(queries[1]?.ids.length, 200)
  queries[1]?.answer([])
  await others[0]
  await new Promise(setImmediate)
  assert.deepEqual(queries[2]?.ids, ['other 200'])
  queries[2]?.answer([record('other 200')])
  assert.deepEqual(await others[200], record('other 200'))
})

test('beyond their bound lookups fail at once, those without a bound do not', async (t) => {
  const { lookups, queries } = heldStore(t)
  const first = lookups.lookUp('first', 1)
  const second = lookups.lookUp('second', 1)
  await assert.rejects(lookups.lookUp('too much', 1))
  const unbounded = lookups.lookUp('good')
  queries[0]?.answer([])
  await first
  await new Promise(setImmediate)
  assert.deepEqual(queries[1]?.ids, ['second', 'good'])
  queries[1]?.answer([record('good')])
  assert.deepEqual(await unbounded, record('good'))
  assert.deepEqual(await second, undefined)
})

test('a failure fails all waiting lookups and all later ones, until a probe finds that the store answers', async (t) => {
  const { lookups, queries, errors, nextQuery } = heldStore(t)
  const waiting = ['a', 'b', 'c'].map((id) => lookups.lookUp(id))
  const firstProbe = nextQuery()
  const settled = Promise.allSettled(waiting)
  queries[0]?.refuse()
  assert.deepEqual(
    (await settled).map(({ status }) => status),
    Array(3).fill('rejected'),
  )
  await assert.rejects(lookups.lookUp('d'))

  await firstProbe
  assert.deepEqual(queries[1]?.ids, [])
  const secondProbe = nextQuery()
  queries[1]?.refuse()
  await secondProbe
  await assert.rejects(lookups.lookUp('e'))
  queries[2]?.answer([])
  await new Promise(setImmediate)
  assert.equal(errors.length, 1)
  assert.equal(queries.length, 3)
  const later = lookups.lookUp('f')
  queries[3]?.answer([record('f')])
  assert.deepEqual(await later, record('f'))
})
