import assert from 'node:assert/strict'
import { test } from 'vitest'
import { createTurns } from './lone-turn.ts'

function watched() {
  const calls: string[] = []
  const turns = createTurns(
    async () => void calls.push('stop taking'),
    async () => void calls.push('go on'),
  )
  const begin = (name: string, alone = false) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const turn = turns.take(alone, async () => {
      calls.push(name)
      await promise
      return name
    })
    return { turn, finish: resolve }
  }
  const settled = () => new Promise(setImmediate)
  return { calls, begin, settled }
}

test('jobs run side by side', async () => {
  const { calls, begin } = watched()
  const jobs = [begin('a'), begin('b')]
  assert.deepEqual(calls, ['a', 'b'])
  for (const { finish } of jobs) finish()
  assert.deepEqual(await Promise.all(jobs.map(({ turn }) => turn)), ['a', 'b'])
})

test('a job that must run alone waits for those that run, and sends away those that come', async () => {
  const { calls, begin, settled } = watched()
  const beside = begin('beside')
  const lone = begin('lone', true)
  assert.equal(await begin('late').turn, undefined)
  assert.equal(await begin('another alone', true).turn, undefined)
  assert.deepEqual(calls, ['beside', 'stop taking'])
  beside.finish()
  await settled()
  assert.deepEqual(calls, ['beside', 'stop taking', 'lone'])
  lone.finish()
  assert.equal(await lone.turn, 'lone')
  assert.deepEqual(calls.at(-1), 'go on')
})

test('a job that fails alone gives the process back', async () => {
  const turns = createTurns(
    async () => {},
    async () => {},
  )
  await assert.rejects(
    turns.take(true, () => Promise.reject(new Error('no'))),
    /no/,
  )
  assert.equal(await turns.take(false, async () => 'next'), 'next')
})
