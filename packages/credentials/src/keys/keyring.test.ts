import assert from 'node:assert/strict'
import { testDatabase } from '@sluice/test-support'
import type { Db } from 'mongodb'
import { type TestContext, test } from 'vitest'
import { keyAccess, newKeyText } from './key.ts'
import { createKeyring } from './keyring.ts'
import { createKey, limitKey, listKeys, revokeKey, rotateKey } from './manage-keys.ts'

const MINUTE_MS = 60_000

/**
 * A keyring on a real database, with a clock that the test moves and a switch that makes lookups
 * fail.
 */
async function ring(t: TestContext, db: Db) {
  const access = keyAccess(db)
  const state = { elapsed: 0, unavailable: false, queries: 0 }
  const start = Date.now()
  const answered = { resolve: () => {} }
  const keyring = createKeyring({
    findKeys: async (ids) => {
      state.queries++
      if (state.unavailable) throw new Error('unavailable')
      const found = await access.findKeys(ids)
      setImmediate(() => answered.resolve())
      return found
    },
    touchKeys: access.touchKeys,
    now: () => start + state.elapsed,
    monotonic: () => state.elapsed,
    retryMs: 1_000,
  })
  t.onTestFinished(() => keyring.close())
  const wait = (ms: number) => {
    state.elapsed += ms
  }
  const nextAnswer = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    answered.resolve = resolve
    return promise
  }
  return { keyring, state, wait, nextAnswer }
}

async function outcome(check: Promise<{ outcome: string }>): Promise<string> {
  return (await check).outcome
}

async function oneKey(t: TestContext, details: { expiresAt?: Date } = {}) {
  const db = await testDatabase(t)
  const created = await createKey(db, { tenant: 'acme', name: 'importer', ...details })
  return { db, ...created, ...(await ring(t, db)) }
}

test('a good key opens its tenant, and is looked up once while fresh', async (t) => {
  const { keyring, key, record, state, wait } = await oneKey(t)
  const known = {
    outcome: 'known',
    keyId: record.id.slice(0, 12),
    role: 'importer',
    tenant: 'acme',
  }
  assert.deepEqual(await keyring.find(key), known)
  wait(1_999)
  assert.deepEqual(await keyring.find(key), known)
  assert.equal(state.queries, 1)
})

test('a key\u2019s role and its own limits come with the check, and a changed limit within four seconds', async (t) => {
  const db = await testDatabase(t)
  const limits = { quotesPerSecond: 10, burstQuotes: 100 }
  const importer = await createKey(db, { tenant: 'acme', name: 'importer', limits })
  const operator = await createKey(db, { role: 'operator', name: 'on call' })
  const { keyring, wait } = await ring(t, db)
  const keyId = importer.record.id.slice(0, 12)
  const known = { outcome: 'known', keyId, role: 'importer', tenant: 'acme' }
  assert.deepEqual(await keyring.find(importer.key), { ...known, limits })
  const { role, tenant } = { ...known, ...(await keyring.find(operator.key)) }
  assert.deepEqual([role, tenant], ['operator', ''])
  await limitKey(db, 'importer', undefined)
  wait(4_000)
  assert.deepEqual(await keyring.find(importer.key), known)
})

test('a missing or malformed key is unknown without a lookup', async (t) => {
  const { keyring, key, state } = await oneKey(t)
  for (const text of [
    undefined,
    '',
    'x',
    `${key}x`,
    key.slice(0, -1),
    key.toLowerCase(),
    'x'.repeat(100_000),
  ]) {
    assert.equal(await outcome(keyring.find(text)), 'unknown')
  }
  assert.equal(state.queries, 0)
})

test('an unknown key is remembered for four seconds', async (t) => {
  const { keyring, state, wait } = await oneKey(t)
  const guess = newKeyText()
  assert.equal(await outcome(keyring.find(guess)), 'unknown')
  wait(3_999)
  assert.equal(await outcome(keyring.find(guess)), 'unknown')
  assert.equal(state.queries, 1)
  wait(1)
  assert.equal(await outcome(keyring.find(guess)), 'unknown')
  assert.equal(state.queries, 2)
})

test('a key that is two seconds old is used as it is and checked in the background', async (t) => {
  const { keyring, key, state, wait, nextAnswer } = await oneKey(t)
  await keyring.find(key)
  wait(2_000)
  const refreshed = nextAnswer()
  assert.equal(await outcome(keyring.find(key)), 'known')
  await refreshed
  assert.equal(state.queries, 2)
  wait(1_999)
  await keyring.find(key)
  assert.equal(state.queries, 2)
})

test('a revoked key stops within four seconds, however it is used meanwhile', async (t) => {
  const { db, keyring, key, wait } = await oneKey(t)
  assert.equal(await outcome(keyring.find(key)), 'known')
  await revokeKey(db, 'importer')
  wait(1_000)
  assert.equal(await outcome(keyring.find(key)), 'known')
  wait(3_000)
  assert.equal(await outcome(keyring.find(key)), 'unknown')
})

test('a revoked key stops at the background check where that comes first', async (t) => {
  const { db, keyring, key, wait, nextAnswer } = await oneKey(t)
  await keyring.find(key)
  await revokeKey(db, 'importer')
  wait(2_000)
  const refreshed = nextAnswer()
  await keyring.find(key)
  await refreshed
  assert.equal(await outcome(keyring.find(key)), 'unknown')
})

test('an expired key stops at its very end, without a lookup', async (t) => {
  const { keyring, key, state, wait } = await oneKey(t, {
    expiresAt: new Date(Date.now() + MINUTE_MS),
  })
  assert.equal(await outcome(keyring.find(key)), 'known')
  wait(MINUTE_MS - 1_500)
  assert.equal(await outcome(keyring.find(key)), 'known')
  const { queries } = state
  wait(1_600)
  assert.equal(await outcome(keyring.find(key)), 'unknown')
  assert.equal(state.queries, queries)
})

test('both keys of a rotation work until the overlap is over', async (t) => {
  const { db, keyring, key, wait } = await oneKey(t)
  const rotated = await rotateKey(db, 'importer', { overlapSeconds: 60 })
  assert.equal(await outcome(keyring.find(key)), 'known')
  assert.equal(await outcome(keyring.find(rotated.key)), 'known')
  wait(61_000)
  assert.equal(await outcome(keyring.find(key)), 'unknown')
  assert.equal(await outcome(keyring.find(rotated.key)), 'known')
})

test('while the store is unavailable, good keys work for fifteen minutes and all others are unavailable', async (t) => {
  const { keyring, key, state, wait } = await oneKey(t)
  await keyring.find(key)
  state.unavailable = true
  wait(14 * MINUTE_MS)
  assert.equal(await outcome(keyring.find(key)), 'known')
  assert.equal(await outcome(keyring.find(newKeyText())), 'unavailable')
  wait(MINUTE_MS)
  assert.equal(await outcome(keyring.find(key)), 'unavailable')
})

test('a key expires on time also while the store is unavailable', async (t) => {
  const { keyring, key, state, wait } = await oneKey(t, {
    expiresAt: new Date(Date.now() + MINUTE_MS),
  })
  await keyring.find(key)
  state.unavailable = true
  wait(30_000)
  assert.equal(await outcome(keyring.find(key)), 'known')
  wait(31_000)
  assert.equal(await outcome(keyring.find(key)), 'unknown')
})

test('a revocation takes effect within a second after the store is back', async (t) => {
  const { db, keyring, key, state, wait, nextAnswer } = await oneKey(t)
  await keyring.find(key)
  await revokeKey(db, 'importer')
  state.unavailable = true
  wait(10_000)
  assert.equal(await outcome(keyring.find(key)), 'known')
  state.unavailable = false
  wait(1_000)
  const back = nextAnswer()
  await keyring.find(key)
  await back
  assert.equal(await outcome(keyring.find(key)), 'unknown')
})

test('a flood of guesses takes few queries and evicts no good key', async (t) => {
  const { keyring, key, state } = await oneKey(t)
  await keyring.find(key)
  const checks = await Promise.all(
    Array.from({ length: 1_000 }, () => outcome(keyring.find(newKeyText()))),
  )
  assert.deepEqual(new Set(checks), new Set(['unknown']))
  assert.ok(state.queries <= 1 + 1 + 5, `${state.queries} queries`)
  const { queries } = state
  assert.equal(await outcome(keyring.find(key)), 'known')
  assert.equal(state.queries, queries)
})

test('the last use is stored, and an earlier one never replaces it', async (t) => {
  const { db, keyring, key, record, wait, state } = await oneKey(t)
  wait(1_500)
  await keyring.find(key)
  await keyring.close()
  const [used] = await listKeys(db)
  assert.ok(used?.lastUsedAt && used.lastUsedAt > record.createdAt)
  assert.equal(state.queries, 1)
  await keyAccess(db).touchKeys(new Map([[record.id, new Date(0)]]))
  assert.deepEqual((await listKeys(db))[0]?.lastUsedAt, used.lastUsedAt)
})
