import assert from 'node:assert/strict'
import { test } from 'vitest'
import { keepRunning, type Running } from './keep-running.ts'

interface Fake extends Running {
  readonly number: number
  die(detail: string): void
  stops: number
}

function fake(number: number): Fake {
  const { promise: died, resolve: die } = Promise.withResolvers<string>()
  const self: Fake = {
    number,
    died,
    die,
    stops: 0,
    async stop() {
      self.stops++
      die('stopped')
    },
  }
  return self
}

const onFailedRestart = () => {}

test('a death is reported, and followed by a restart', async () => {
  const deaths: string[] = []
  const restarted = Promise.withResolvers<Fake>()
  let number = 0
  const kept = await keepRunning<Fake>({
    launch: async () => fake(++number),
    onDeath: (detail) => deaths.push(detail),
    onFailedRestart: () => assert.fail('no restart failed'),
    onRestart: restarted.resolve,
  })
  kept.current().die('killed by SIGKILL')
  assert.equal((await restarted.promise).number, 2)
  assert.deepEqual(deaths, ['killed by SIGKILL'])
  await kept.stop()
  assert.equal(kept.current().number, 2)
})

test('a restart that fails is tried again, after longer and longer pauses', async () => {
  const failed: unknown[] = []
  const restarted = Promise.withResolvers<Fake>()
  let number = 0
  const launch = async () => {
    number++
    if (number === 2 || number === 3) throw new Error('port taken')
    return fake(number)
  }
  const kept = await keepRunning<Fake>({
    launch,
    onDeath: (detail) => failed.push(detail),
    onFailedRestart: (...details) => failed.push(details),
    onRestart: restarted.resolve,
  })
  kept.current().die('exit code 1')
  assert.equal((await restarted.promise).number, 4)
  assert.deepEqual(failed, ['exit code 1', ['port taken', 1, 400], ['port taken', 2, 800]])
  await kept.stop()
})

test('a stop is not reported as a death, and a second stop has no effect', async () => {
  const kept = await keepRunning({
    launch: async () => fake(1),
    onDeath: () => assert.fail('called a stop a death'),
    onFailedRestart,
  })
  await Promise.all([kept.stop(), kept.stop()])
  await kept.stop()
})

test('a stop during a restart leaves no server running', async () => {
  const starting = Promise.withResolvers<void>()
  const second = Promise.withResolvers<Fake>()
  let number = 0
  const launch = () => {
    if (++number === 1) return Promise.resolve(fake(1))
    starting.resolve()
    return second.promise
  }
  const kept = await keepRunning({ launch, onDeath: () => {}, onFailedRestart })
  kept.current().die('exit code 1')
  await starting.promise
  const stopped = kept.stop()
  const late = fake(2)
  second.resolve(late)
  await stopped
  assert.ok(late.stops > 0)
})

test('a first start that fails is an error for the caller', async () => {
  await assert.rejects(
    keepRunning({ launch: () => Promise.reject(new Error('no')), onDeath: () => {}, onFailedRestart }),
    /no/,
  )
})
