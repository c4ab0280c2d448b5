import assert from 'node:assert/strict'
import { onTestFinished, test, vi } from 'vitest'
import { type KeyRecord, newKeyText } from './key.ts'
import { writeUses } from './key-lookups.ts'
import { createKeyring, keyHash } from './keyring.ts'

const fail = (error: unknown) => assert.fail(String(error))

function fakeIntervals() {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
}

test('many uses of a key are one write a minute, of the last', async () => {
  fakeIntervals()
  const writes: Map<string, Date>[] = []
  const touchKeys = async (uses: ReadonlyMap<string, Date>) => void writes.push(new Map(uses))
  const uses = new Map<string, number>()
  const close = writeUses(uses, { touchKeys, onError: fail })
  for (const at of [1, 2, 3]) uses.set('a', at)
  uses.set('b', 4)
  vi.advanceTimersByTime(59_999)
  await new Promise(setImmediate)
  assert.equal(writes.length, 0)
  vi.advanceTimersByTime(1)
  await new Promise(setImmediate)
  assert.deepEqual(writes, [
    new Map([
      ['a', new Date(3)],
      ['b', new Date(4)],
    ]),
  ])
  vi.advanceTimersByTime(60_000)
  await close()
  assert.equal(writes.length, 1)
})

test('closing writes what is left', async () => {
  const writes: Map<string, Date>[] = []
  const touchKeys = async (last: ReadonlyMap<string, Date>) => void writes.push(new Map(last))
  const close = writeUses(new Map([['a', 1]]), { touchKeys, onError: fail })
  await close()
  assert.deepEqual(writes, [new Map([['a', new Date(1)]])])
})

test('what could not be written is written with the next, unless used since; the failure is reported', async () => {
  fakeIntervals()
  const errors: unknown[] = []
  const writes: Map<string, Date>[] = []
  const touchKeys = async (last: ReadonlyMap<string, Date>) => {
    writes.push(new Map(last))
    if (writes.length === 1) {
      uses.set('b', 9)
      throw new Error('unavailable')
    }
  }
  const uses = new Map<string, number>()
  const close = writeUses(uses, { touchKeys, onError: (error) => void errors.push(error) })
  uses.set('a', 1)
  uses.set('b', 2)
  vi.advanceTimersByTime(60_000)
  await new Promise(setImmediate)
  assert.equal(errors.length, 1)
  await close()
  assert.deepEqual(
    writes[1],
    new Map([
      ['a', new Date(1)],
      ['b', new Date(9)],
    ]),
  )
})

test('no more uses are noted between two writes than allowed', async () => {
  const [a, b] = [newKeyText(), newKeyText()]
  const writes: Map<string, Date>[] = []
  let now = 0
  const findKeys = async (ids: readonly string[]) =>
    ids.map(
      (id): KeyRecord => ({
        id,
        role: 'importer',
        tenant: 'acme',
        name: 'importer',
        createdAt: new Date(0),
      }),
    )
  const touchKeys = async (last: ReadonlyMap<string, Date>) => void writes.push(new Map(last))
  const keyring = createKeyring({ findKeys, touchKeys, maxKeys: 1, now: () => ++now })
  for (const key of [a, b, a]) assert.equal((await keyring.find(key)).outcome, 'known')
  await keyring.close()
  assert.deepEqual(Array.from(writes[0]?.keys() ?? []), [keyHash(a)])
  assert.equal(writes.length, 1)
})
