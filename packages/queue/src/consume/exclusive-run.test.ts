import assert from 'node:assert/strict'
import { test } from 'vitest'
import { createExclusiveRun } from './exclusive-run.ts'

function watched() {
  const calls: string[] = []
  const call = (name: string) => async () => void calls.push(name)
  return { calls, call, exclusiveRun: createExclusiveRun(call('pause'), call('resume')) }
}

test('a job begins once the process has stopped fetching and runs no other job', async () => {
  const { calls, call, exclusiveRun } = watched()
  const others = Promise.withResolvers<void>()
  const run = exclusiveRun.run(
    () => others.promise,
    async () => {
      await call('work')()
      return 'done'
    },
  )
  assert.equal(exclusiveRun.isActive, true)
  await new Promise(setImmediate)
  assert.deepEqual(calls, ['pause'])
  others.resolve()
  assert.equal(await run, 'done')
  assert.deepEqual(calls, ['pause', 'work', 'resume'])
  assert.equal(exclusiveRun.isActive, false)
})

test('other jobs run again after a job has failed exclusively', async () => {
  const { calls, exclusiveRun } = watched()
  await assert.rejects(
    exclusiveRun.run(
      async () => {},
      () => Promise.reject(new Error('no')),
    ),
    /no/,
  )
  assert.equal(exclusiveRun.isActive, false)
  assert.deepEqual(calls, ['pause', 'resume'])
})
