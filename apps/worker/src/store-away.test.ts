import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { test } from 'vitest'
import { createFindHang } from './store-away.ts'

test('a store hangs if it refuses a probe while a batch runs for long, and no more once the batch has ended', async () => {
  let ms = 2_000
  let probes = 0
  let probe = async () => {}
  const findHang = createFindHang(
    () => {
      probes += 1
      return probe()
    },
    () => ms,
  )
  assert.equal(findHang(), undefined)
  assert.equal(probes, 0, 'a short batch costs no probe')
  ms = 5_000
  findHang()
  await setImmediate()
  assert.equal(findHang(), undefined, 'a slow store answers the probe')
  await setImmediate()
  probe = () => Promise.reject(new Error('no answer'))
  findHang()
  await setImmediate()
  assert.deepEqual(findHang(), { ms, reason: 'no answer' })
  ms = 0
  assert.equal(findHang(), undefined)
})
