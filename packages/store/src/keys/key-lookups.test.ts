import assert from 'node:assert/strict'
import { test } from 'vitest'
import type { KeyRecord } from './key.ts'
import { createKeyLookups } from './key-lookups.ts'

/** A store whose queries wait until the test answers or refuses them. */
function heldStore() {
  const queries: { ids: readonly string[]; answer: (records: KeyRecord[]) => void; refuse: () => void }[] = []
  const findKeys = (ids: readonly string[]) => {
    const { promise, resolve, reject } = Promise.withResolvers<KeyRecord[]>()
    queries.push({ ids, answer: resolve, refuse: () => reject(new Error('away')) })
    return promise
  }
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  const clock = { ms: 0 }
  const lookUp = createKeyLookups({ findKeys, onError, monotonic: () => clock.ms, retryMs: 1_000 })
  return { lookUp, queries, errors, clock }
}

const record = (id: string): KeyRecord => ({
  id,
  role: 'importer',
  tenant: 't',
  name: 'n',
  createdAt: new Date(0),
})

test('lookups that arrive during a query share the next one', async () => {
  const { lookUp, queries } = heldStore()
  const first = lookUp('a')
  const gathered = ['b', 'c'].map((id) => lookUp(id))
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

test('a query has at most 200 ids', async () => {
  const { lookUp, queries } = heldStore()
  const first = lookUp('first')
  const others = Array.from({ length: 201 }, (_, at) => lookUp(`other ${at}`))
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

test('beyond their bound lookups fail at once, those without a bound do not', async () => {
  const { lookUp, queries } = heldStore()
  const first = lookUp('first', 1)
  const second = lookUp('second', 1)
  await assert.rejects(lookUp('too much', 1))
  const unbounded = lookUp('good')
  queries[0]?.answer([])
  await first
  await new Promise(setImmediate)
  assert.deepEqual(queries[1]?.ids, ['second', 'good'])
  queries[1]?.answer([record('good')])
  assert.deepEqual(await unbounded, record('good'))
  assert.deepEqual(await second, undefined)
})

test('a failure fails all waiting lookups and all later ones, except one a second, until that one succeeds', async () => {
  const { lookUp, queries, errors, clock } = heldStore()
  const waiting = ['a', 'b', 'c'].map((id) => lookUp(id))
  const settled = Promise.allSettled(waiting)
  queries[0]?.refuse()
  assert.deepEqual(
    (await settled).map(({ status }) => status),
    Array(3).fill('rejected'),
  )
  clock.ms = 999
  await assert.rejects(lookUp('d'))

  clock.ms = 1_000
  const second = lookUp('e')
  await assert.rejects(lookUp('f'), 'nobody else waits for the query that tries again')
  queries[1]?.refuse()
  await assert.rejects(second)
  await assert.rejects(lookUp('g'))

  clock.ms = 2_000
  const third = lookUp('h')
  queries[2]?.answer([record('h')])
  assert.deepEqual(await third, record('h'))
  await new Promise(setImmediate)
  const later = lookUp('i')
  queries[3]?.answer([record('i')])
  assert.deepEqual(await later, record('i'))
  assert.deepEqual(
    queries.map(({ ids }) => ids),
    [['a'], ['e'], ['h'], ['i']],
  )
  assert.equal(errors.length, 2)
})
