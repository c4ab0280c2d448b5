import assert from 'node:assert/strict'
import { test } from 'vitest'
import type { KeyRecord } from './key.ts'
import { createKeyLookups } from './key-lookups.ts'

/** A store whose queries wait until the test answers or refuses them. */
function heldStore() {
  const queries: {
    ids: readonly string[]
    answer: (records: KeyRecord[]) => void
    refuse: () => void
  }[] = []
  const findKeys = (ids: readonly string[]) => {
    const { promise, resolve, reject } = Promise.withResolvers<KeyRecord[]>()
    queries.push({ ids, answer: resolve, refuse: () => reject(new Error('unavailable')) })
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

test('a failure fails all waiting lookups and all later ones, until a query that nobody waits for succeeds', async () => {
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
  assert.equal(queries.length, 1)

  for (const [ms, end] of [
    [1_000, 'refuse'],
    [2_000, 'answer'],
  ] as const) {
    clock.ms = ms
    await assert.rejects(lookUp('e'))
    await assert.rejects(lookUp('f'))
    if (end === 'answer') queries.at(-1)?.answer([])
    else queries.at(-1)?.refuse()
    await new Promise(setImmediate)
  }
  const later = lookUp('g')
  queries.at(-1)?.answer([record('g')])
  assert.deepEqual(await later, record('g'))
  assert.deepEqual(
    queries.map(({ ids }) => ids),
    [['a'], [], [], ['g']],
  )
  assert.equal(errors.length, 2)
})

test('after a failure without later lookups, all lookups are answered', async () => {
  const { lookUp, queries, clock } = heldStore()
  const failed = lookUp('a')
  queries[0]?.refuse()
  await assert.rejects(failed)
  clock.ms = 600_000
  const found = ['b', 'c'].map((id) => lookUp(id))
  queries[1]?.answer([record('b')])
  await new Promise(setImmediate)
  queries[2]?.answer([record('c')])
  assert.deepEqual(await Promise.all(found), [record('b'), record('c')])
})
