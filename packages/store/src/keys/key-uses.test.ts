import assert from 'node:assert/strict'
import { onTestFinished, test, vi } from 'vitest'
import { createKeyUses } from './keyring.ts'

const fail = (error: unknown) => assert.fail(String(error))

function fakeIntervals() {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
}

test('many uses of a key are one write a minute, of the last', async () => {
  fakeIntervals()
  const writes: Map<string, Date>[] = []
  const touchKeys = async (uses: ReadonlyMap<string, Date>) => void writes.push(new Map(uses))
  const uses = createKeyUses({ touchKeys, onError: fail })
  for (const at of [1, 2, 3]) uses.note('a', at)
  uses.note('b', 4)
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
  await uses.close()
  assert.equal(writes.length, 1)
})

test('closing writes what is left', async () => {
  const writes: Map<string, Date>[] = []
  const uses = createKeyUses({ touchKeys: async (last) => void writes.push(new Map(last)), onError: fail })
  uses.note('a', 1)
  await uses.close()
  assert.deepEqual(writes, [new Map([['a', new Date(1)]])])
})

test('what could not be written is written with the next, unless used since; the failure is reported', async () => {
  fakeIntervals()
  const errors: unknown[] = []
  const writes: Map<string, Date>[] = []
  const touchKeys = async (last: ReadonlyMap<string, Date>) => {
    writes.push(new Map(last))
    if (writes.length === 1) {
      uses.note('b', 9)
      throw new Error('away')
    }
  }
  const uses = createKeyUses({ touchKeys, onError: (error) => void errors.push(error) })
  uses.note('a', 1)
  uses.note('b', 2)
  vi.advanceTimersByTime(60_000)
  await new Promise(setImmediate)
  assert.equal(errors.length, 1)
  await uses.close()
  assert.deepEqual(
    writes[1],
    new Map([
      ['b', new Date(9)],
      ['a', new Date(1)],
    ]),
  )
})

test('no more keys are kept than allowed', async () => {
  const writes: Map<string, Date>[] = []
  const uses = createKeyUses({
    touchKeys: async (last) => void writes.push(new Map(last)),
    onError: fail,
    maxKeys: 1,
  })
  uses.note('a', 1)
  uses.note('b', 2)
  uses.note('a', 3)
  await uses.close()
  assert.deepEqual(writes, [new Map([['a', new Date(3)]])])
})
