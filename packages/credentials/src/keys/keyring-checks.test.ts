// Tests what callers get while the check of a known key is under way: the store answers when the
// test says so.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'vitest'
import { type KeyRecord, newKeyText } from './key.ts'
import { createKeyring, keyHash } from './keyring.ts'

const recordOf = (key: string): KeyRecord => ({
  id: keyHash(key),
  role: 'importer',
  tenant: 'acme',
  name: 'importer',
  createdAt: new Date(0),
})

const loopIteration = () => new Promise(setImmediate)

/** A keyring that has seen a key, with a store whose further answers wait for the test. */
async function seenKey(t: TestContext, { maxKeys = 10 } = {}) {
  const [key, other] = [newKeyText(), newKeyText()]
  const queries: {
    ids: readonly string[]
    answer: (records: KeyRecord[]) => void
    refuse: () => void
  }[] = []
  const clock = { ms: 0 }
  const keyring = createKeyring({
    findKeys: (ids) => {
      const { promise, resolve, reject } = Promise.withResolvers<KeyRecord[]>()
      queries.push({ ids, answer: resolve, refuse: () => reject(new Error('unavailable')) })
      return promise
    },
    touchKeys: async () => {},
    monotonic: () => clock.ms,
    retryMs: 60_000,
    maxKeys,
  })
  t.onTestFinished(() => keyring.close())
  const seen = keyring.find(key)
  queries[0]?.answer([recordOf(key)])
  assert.equal((await seen).outcome, 'known')
  return { key, other, queries, clock, keyring }
}

test('all callers with a stale key wait for one check', async (t) => {
  const { key, queries, clock, keyring } = await seenKey(t)
  clock.ms = 4_000
  const checks = Array.from({ length: 50 }, () => keyring.find(key))
  assert.equal(queries.length, 2)
  assert.deepEqual(queries[1]?.ids, [keyHash(key)])
  queries[1]?.answer([])
  assert.deepEqual(
    (await Promise.all(checks)).map(({ outcome }) => outcome),
    Array(50).fill('unknown'),
  )
  assert.equal(queries.length, 2)
})

test('a key that worked, and that MongoDB no longer has, is named as gone, and no other one is', async (t) => {
  const { key, other, queries, clock, keyring } = await seenKey(t)
  for (const ms of [4_000, 8_000]) {
    clock.ms = ms
    const check = keyring.find(key)
    queries.at(-1)?.answer([])
    const { outcome, tenant, why } = Object(await check)
    assert.deepEqual([outcome, tenant, why], ['unknown', 'acme', 'gone'])
  }
  const guess = keyring.find(other)
  queries.at(-1)?.answer([])
  assert.deepEqual(await guess, { outcome: 'unknown' })
  clock.ms = 12_000
  const restored = keyring.find(key)
  queries.at(-1)?.answer([recordOf(key)])
  assert.equal((await restored).outcome, 'known')
})

test('all callers with a new key wait for one lookup', async (t) => {
  const { other, queries, keyring } = await seenKey(t)
  const checks = Array.from({ length: 50 }, () => keyring.find(other))
  assert.deepEqual(queries[1]?.ids, [keyHash(other)])
  queries[1]?.answer([recordOf(other)])
  assert.deepEqual(
    (await Promise.all(checks)).map(({ outcome }) => outcome),
    Array(50).fill('known'),
  )
  assert.equal((await keyring.find(other)).outcome, 'known')
  assert.equal(queries.length, 2)
})

test('too many guesses at once are unavailable, while a key that was seen is checked', async (t) => {
  const { key, queries, clock, keyring } = await seenKey(t)
  clock.ms = 4_000
  const running = keyring.find(newKeyText())
  const guesses = Array.from({ length: 1_001 }, () => keyring.find(newKeyText()))
  assert.equal((await guesses[1_000])?.outcome, 'unavailable')
  const checked = keyring.find(key)
  queries[1]?.answer([])
  assert.equal((await running).outcome, 'unknown')
  for (let query = 2; query < 8; query++) {
    await loopIteration()
    queries[query]?.answer([recordOf(key)])
  }
  assert.equal((await checked).outcome, 'known')
  assert.equal((await guesses[0])?.outcome, 'unknown')
})

test('a guess that was remembered is undecided once the store is unavailable', async (t) => {
  const { other: guess, queries, clock, keyring } = await seenKey(t)
  const guessed = keyring.find(guess)
  queries[1]?.answer([])
  assert.equal((await guessed).outcome, 'unknown')
  clock.ms = 4_000
  const again = keyring.find(guess)
  queries[2]?.refuse()
  assert.equal((await again).outcome, 'unavailable')
  assert.equal((await keyring.find(guess)).outcome, 'unavailable')
})

test('a key that is evicted during a failing check works on', async (t) => {
  const { key, other, queries, clock, keyring } = await seenKey(t, { maxKeys: 1 })
  clock.ms = 4_000
  const newcomer = keyring.find(other)
  const checked = keyring.find(key)
  queries[1]?.answer([recordOf(other)])
  assert.equal((await newcomer).outcome, 'known')
  await loopIteration()
  queries[2]?.refuse()
  assert.equal((await checked).outcome, 'known')
})

test('a caller that comes late to a background check waits for it', async (t) => {
  const { key, queries, clock, keyring } = await seenKey(t)
  clock.ms = 3_999
  assert.equal((await keyring.find(key)).outcome, 'known')
  clock.ms = 4_000
  const late = keyring.find(key)
  queries[1]?.answer([])
  assert.equal((await late).outcome, 'unknown')
  assert.equal(queries.length, 2)
})

test('a caller gets the result of a check whose key was evicted meanwhile', async (t) => {
  const { key, other, queries, clock, keyring } = await seenKey(t, { maxKeys: 1 })
  clock.ms = 4_000
  const newcomer = keyring.find(other)
  const checked = keyring.find(key)
  queries[1]?.answer([recordOf(other)])
  assert.equal((await newcomer).outcome, 'known')
  await loopIteration()
  queries[2]?.answer([recordOf(key)])
  assert.equal((await checked).outcome, 'known')
  assert.equal((await keyring.find(other)).outcome, 'known')
  assert.equal(queries.length, 3)
})

test('a key whose check fails works on, and no caller asks again while the store fails', async (t) => {
  const { key, queries, clock, keyring } = await seenKey(t)
  clock.ms = 4_000
  const checked = keyring.find(key)
  queries[1]?.refuse()
  assert.equal((await checked).outcome, 'known')
  assert.equal((await keyring.find(key)).outcome, 'known')
  assert.equal(queries.length, 2)
})

test('a key that was found revoked stays unknown while the store is unavailable', async (t) => {
  const { key, queries, clock, keyring } = await seenKey(t)
  clock.ms = 2_000
  assert.equal((await keyring.find(key)).outcome, 'known')
  queries[1]?.answer([{ ...recordOf(key), revokedAt: new Date() }])
  await loopIteration()
  clock.ms = 8_000
  const checked = keyring.find(key)
  queries[2]?.refuse()
  assert.equal((await checked).outcome, 'unknown')
  clock.ms = 60 * 60_000
  const later = keyring.find(key)
  queries[3]?.refuse()
  assert.equal((await later).outcome, 'unknown')
})
