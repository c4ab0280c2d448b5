import assert from 'node:assert/strict'
import { test } from 'vitest'
import { createPauses } from './exclusive-run.ts'

test('a job begins once the process has stopped fetching and runs no other job', async () => {
  const pauses = createPauses()
  const others = Promise.withResolvers<void>()
  let began = false
  const run = pauses.runExclusively(
    () => others.promise,
    async () => {
      began = true
      assert.deepEqual([pauses.open, pauses.isExclusive], [1, true])
      return 'done'
    },
  )
  assert.deepEqual([pauses.open, pauses.isExclusive], [1, true])
  await new Promise(setImmediate)
  assert.equal(began, false)
  others.resolve()
  assert.equal(await run, 'done')
  assert.deepEqual([pauses.open, pauses.isExclusive], [0, false])
  await pauses.over()
})

test('other jobs run again after a job has failed exclusively', async () => {
  const pauses = createPauses()
  const failing = pauses.runExclusively(
    async () => {},
    () => Promise.reject(new Error('no')),
  )
  await assert.rejects(failing, /no/)
  assert.deepEqual([pauses.open, pauses.isExclusive], [0, false])
  await pauses.over()
})
