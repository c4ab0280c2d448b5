import assert from 'node:assert/strict'
import { testDatabase } from '@sluice/test-support'
import type { Db } from 'mongodb'
import { test } from 'vitest'
import { type KeyRecord, keyCollection } from './key.ts'
import { keyHash } from './keyring.ts'
import {
  createKey,
  KeyRefusedError,
  limitKey,
  listKeys,
  revokeKey,
  rotateKey,
} from './manage-keys.ts'

const HOUR_MS = 3_600_000

const refusal = (message: RegExp) => ({ name: 'KeyRefusedError', message })
const UNKNOWN = refusal(/^No live key has the name or id/)
const DUPLICATE = refusal(/ has a key named .* that works/)

async function stored(db: Db, { id }: KeyRecord): Promise<KeyRecord | undefined> {
  return (await listKeys(db)).find((record) => record.id === id)
}

test('a created key is stored by its hash alone', async (t) => {
  const db = await testDatabase(t)
  const expiresAt = new Date(Date.now() + HOUR_MS)
  const { key, record } = await createKey(db, { tenant: 'acme', name: 'importer', expiresAt })
  const stored = await keyCollection(db).find().toArray()
  assert.deepEqual(stored, [
    {
      _id: keyHash(key),
      role: 'importer',
      tenant: 'acme',
      name: 'importer',
      createdAt: record.createdAt,
      expiresAt,
    },
  ])
  assert.doesNotMatch(JSON.stringify(stored), new RegExp(key.slice(4)))
})

test('keys are listed oldest first, of all tenants or of one', async (t) => {
  const db = await testDatabase(t)
  const first = await createKey(db, { tenant: 'acme', name: 'a' })
  const second = await createKey(db, { tenant: 'globex', name: 'b' })
  await keyCollection(db).updateOne({ _id: second.record.id }, { $set: { createdAt: new Date(0) } })
  assert.deepEqual(
    (await listKeys(db)).map(({ name }) => name),
    ['b', 'a'],
  )
  assert.deepEqual(await listKeys(db, 'acme'), [first.record])
})

for (const [what, text] of [
  ['blank', ' \t'],
  ['too long', 'x'.repeat(201)],
  ['padded', ' acme'],
  ['a control character', 'ac\u001b[2Jme'],
  ['text that runs backwards', 'ac\u202eme'],
] as const) {
  test(`a tenant or name that is ${what} is refused`, async (t) => {
    const db = await testDatabase(t)
    await assert.rejects(createKey(db, { tenant: text, name: 'n' }), KeyRefusedError)
    await assert.rejects(createKey(db, { tenant: 't', name: text }), KeyRefusedError)
  })
}

test('a key that would have expired already is refused', async (t) => {
  const db = await testDatabase(t)
  for (const expiresAt of [new Date(0), new Date(), new Date(Number.NaN)]) {
    await assert.rejects(createKey(db, { tenant: 't', name: 'n', expiresAt }), KeyRefusedError)
  }
})

test('rotation creates a key with the same tenant and name, and the old one expires after the overlap', async (t) => {
  const db = await testDatabase(t)
  const old = await createKey(db, { tenant: 'acme', name: 'importer' })
  const before = Date.now()
  const { key, record } = await rotateKey(db, 'importer', { overlapSeconds: 3_600 })
  assert.notEqual(key, old.key)
  assert.deepEqual([record.tenant, record.name, record.expiresAt], ['acme', 'importer', undefined])
  const replaced = await stored(db, old.record)
  assert.equal(replaced?.replacedBy, record.id)
  const end = replaced?.expiresAt?.getTime() ?? 0
  assert.ok(end >= before + HOUR_MS && end <= Date.now() + HOUR_MS)
})

test('a key may delete only if it was created so, and a rotation keeps the right', async (t) => {
  const db = await testDatabase(t)
  const { record } = await createKey(db, { tenant: 'acme', name: 'importer' })
  assert.equal((await stored(db, record))?.deletes, undefined)
  const { record: deleter } = await createKey(db, { tenant: 'acme', name: 'gc', deletes: true })
  const rotated = await rotateKey(db, 'gc', { overlapSeconds: 0 })
  assert.deepEqual([deleter.deletes, rotated.record.deletes], [true, true])
})

test('rotation keeps the expiry, of the new key and of the old one if that is earlier than the overlap', async (t) => {
  const db = await testDatabase(t)
  const expiresAt = new Date(Date.now() + HOUR_MS)
  const { record } = await createKey(db, { tenant: 'acme', name: 'importer', expiresAt })
  const rotated = await rotateKey(db, record.id.slice(0, 12), { overlapSeconds: 7_200 })
  assert.deepEqual((await stored(db, record))?.expiresAt, expiresAt)
  assert.deepEqual((await stored(db, rotated.record))?.expiresAt, expiresAt)
  assert.deepEqual(rotated.replaced, await stored(db, record))
})

test('rotation can give the new key another expiry', async (t) => {
  const db = await testDatabase(t)
  await createKey(db, {
    tenant: 'acme',
    name: 'importer',
    expiresAt: new Date(Date.now() + HOUR_MS),
  })
  const expiresAt = new Date(Date.now() + 2 * HOUR_MS)
  const { record } = await rotateKey(db, 'importer', { overlapSeconds: 60, expiresAt })
  assert.deepEqual((await stored(db, record))?.expiresAt, expiresAt)
  const rejected = rotateKey(db, 'importer', { overlapSeconds: 60, expiresAt: new Date(0) })
  await assert.rejects(rejected, KeyRefusedError)
  assert.equal((await stored(db, record))?.replacedBy, undefined)
})

test('a name is refused while another key of the tenant, or another operator, has it and works', async (t) => {
  const db = await testDatabase(t)
  const importer = { tenant: 'acme', name: 'importer' }
  const operator = { role: 'operator', name: 'on call' } as const
  for (const details of [importer, operator]) {
    await createKey(db, details)
    await assert.rejects(createKey(db, details), DUPLICATE)
    await rotateKey(db, details.name, { overlapSeconds: 0 })
    await assert.rejects(createKey(db, details), DUPLICATE)
    await revokeKey(db, details.name)
    await createKey(db, details)
  }
  await createKey(db, { tenant: 'globex', name: 'importer' })
})

test('an ambiguous name lists each key with its state', async (t) => {
  const db = await testDatabase(t)
  const old = await createKey(db, { tenant: 'acme', name: 'importer' })
  const { record, replaced } = await rotateKey(db, 'importer', { overlapSeconds: 60 })
  await assert.rejects(revokeKey(db, 'importer'), (error) => {
    assert.ok(error instanceof KeyRefusedError)
    const lines = error.message.split('\n').slice(1).sort()
    const expected = [
      `  ${old.record.id.slice(0, 12)}  acme  importer  replaced, until ${replaced.expiresAt?.toISOString()}, created ${old.record.createdAt.toISOString()}`,
      `  ${record.id.slice(0, 12)}  acme  importer  live, created ${record.createdAt.toISOString()}`,
    ]
    assert.deepEqual(lines, expected.sort())
    return true
  })
})

test('a name refers to the newest of a chain of rotations', async (t) => {
  const db = await testDatabase(t)
  await createKey(db, { tenant: 'acme', name: 'importer' })
  const second = await rotateKey(db, 'importer', { overlapSeconds: 60 })
  const third = await rotateKey(db, 'importer', { overlapSeconds: 60 })
  const replaced = await stored(db, second.record)
  assert.equal(replaced?.replacedBy, third.record.id)
})

test('an overlap out of range is refused and changes nothing', async (t) => {
  const db = await testDatabase(t)
  const { record } = await createKey(db, { tenant: 'acme', name: 'importer' })
  for (const overlapSeconds of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
    await assert.rejects(rotateKey(db, 'importer', { overlapSeconds }), KeyRefusedError)
  }
  assert.deepEqual(await listKeys(db), [record])
})

test('a name that several tenants use needs an id instead', async (t) => {
  const db = await testDatabase(t)
  const acme = await createKey(db, { tenant: 'acme', name: 'importer' })
  const globex = await createKey(db, { tenant: 'globex', name: 'importer' })
  const ambiguous = (error: unknown) => {
    assert.ok(error instanceof KeyRefusedError)
    for (const { id } of [acme.record, globex.record])
      assert.ok(error.message.includes(id.slice(0, 12)))
    return true
  }
  await assert.rejects(revokeKey(db, 'importer'), ambiguous)
  await assert.rejects(rotateKey(db, 'importer', { overlapSeconds: 0 }), ambiguous)
  const { tenant, revokedAt } = await revokeKey(db, globex.record.id.slice(0, 12))
  assert.equal(tenant, 'globex')
  assert.ok(revokedAt)
  assert.deepEqual((await listKeys(db, 'acme'))[0]?.revokedAt, undefined)
  assert.deepEqual((await listKeys(db, 'globex'))[0]?.revokedAt, revokedAt)
})

test('a reference finds only live keys, and needs at least six digits of an id', async (t) => {
  const db = await testDatabase(t)
  const { record } = await createKey(db, { tenant: 'acme', name: 'importer' })
  for (const reference of ['other', record.id.slice(0, 5), '']) {
    await assert.rejects(revokeKey(db, reference), UNKNOWN)
  }
  await revokeKey(db, 'importer')
  await assert.rejects(revokeKey(db, 'importer'), UNKNOWN)
  await assert.rejects(rotateKey(db, record.id, { overlapSeconds: 0 }), UNKNOWN)
})

test('an operator and a viewer have no tenant and no limits, and an importer needs a tenant', async (t) => {
  const db = await testDatabase(t)
  const { record } = await createKey(db, { role: 'operator', name: 'on call' })
  assert.deepEqual([record.role, record.tenant], ['operator', ''])
  assert.deepEqual(await stored(db, record), record)
  const limits = { quotesPerSecond: 10, burstQuotes: 100 }
  for (const details of [
    { role: 'operator', tenant: 'acme', name: 'n' },
    { role: 'operator', limits, name: 'n' },
    { role: 'viewer', tenant: 'acme', name: 'n' },
    { role: 'viewer', limits, name: 'n' },
    { role: 'viewer', deletes: true, name: 'n' },
    { role: 'operator', deletes: true, name: 'n' },
    { role: 'importer', name: 'n' },
  ] as const) {
    await assert.rejects(createKey(db, details), KeyRefusedError)
  }
  await assert.rejects(limitKey(db, 'on call', limits), KeyRefusedError)
})

test('limits are stored with the key, changed and removed later, and kept by a rotation', async (t) => {
  const db = await testDatabase(t)
  const first = { quotesPerSecond: 10, burstQuotes: 100 }
  const { record } = await createKey(db, { tenant: 'acme', name: 'importer', limits: first })
  assert.deepEqual((await stored(db, record))?.limits, first)
  const second = { quotesPerSecond: 20, burstQuotes: 50 }
  assert.deepEqual((await limitKey(db, 'importer', second)).limits, second)
  const rotated = await rotateKey(db, 'importer', { overlapSeconds: 0 })
  assert.deepEqual([rotated.record.role, rotated.record.limits], ['importer', second])
  await limitKey(db, rotated.record.id, undefined)
  assert.equal((await stored(db, rotated.record))?.limits, undefined)
  for (const quotesPerSecond of [0, 1.5, -1, Number.NaN, 1e12]) {
    await assert.rejects(
      limitKey(db, rotated.record.id, { ...second, quotesPerSecond }),
      KeyRefusedError,
    )
  }
})

test('a rotated operator is an operator', async (t) => {
  const db = await testDatabase(t)
  await createKey(db, { role: 'operator', name: 'on call' })
  const { record } = await rotateKey(db, 'on call', { overlapSeconds: 0 })
  assert.deepEqual([record.role, record.tenant], ['operator', ''])
})
