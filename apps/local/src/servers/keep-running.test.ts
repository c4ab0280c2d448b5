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

/** Keeps fakes running. `said` has what people read. */
function keepFakes(launch: () => Promise<Fake>) {
  const said: string[] = []
  const restarted = Promise.withResolvers<void>()
  const say = (line: string) => {
    said.push(line)
    if (line === 'redis runs again') restarted.resolve()
  }
  const adviceAfter = (failures: number) => (failures > 1 ? 'Look at it.' : '')
  const kept = keepRunning<Fake>({ name: 'redis', log: '/a.log', launch, say, adviceAfter })
  return { kept, said, restarted: restarted.promise }
}

const DIED = 'redis ended (exit code 1); starting it again. Its log: /a.log'

test('a death is reported, and followed by a restart', async () => {
  let number = 0
  const { kept: keeping, said, restarted } = keepFakes(async () => fake(++number))
  const kept = await keeping
  kept.current().die('exit code 1')
  await restarted
  assert.equal(kept.current().number, 2)
  assert.deepEqual(said, [DIED, 'redis runs again'])
  await kept.stop()
})

test('a restart that fails is tried again, after longer and longer pauses', async () => {
  let number = 0
  const launch = async () => {
    number++
    if (number === 2 || number === 3) throw new Error('port taken')
    return fake(number)
  }
  const { kept: keeping, said, restarted } = keepFakes(launch)
  const kept = await keeping
  const began = performance.now()
  kept.current().die('exit code 1')
  await restarted
  assert.equal(kept.current().number, 4)
  const failed = 'redis could not be started again: port taken'
  const [second, third] = ['Attempt 2 follows in 1 s.', 'Attempt 3 follows in 1 s. Look at it.']
  assert.deepEqual(said, [DIED, failed, second, failed, third, 'redis runs again'])
  assert.ok(performance.now() - began > 1_300, 'pauses of 200, 400 and 800 ms')
  await kept.stop()
})

test('a stop is not reported as a death, and a second stop has no effect', async () => {
  const { kept: keeping, said } = keepFakes(async () => fake(1))
  const kept = await keeping
  await Promise.all([kept.stop(), kept.stop()])
  await kept.stop()
  assert.deepEqual(said, [])
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
  const kept = await keepFakes(launch).kept
  kept.current().die('exit code 1')
  await starting.promise
  const stopped = kept.stop()
  const late = fake(2)
  second.resolve(late)
  await stopped
  assert.ok(late.stops > 0)
})

test('a first start that fails is an error for the caller', async () => {
  await assert.rejects(keepFakes(() => Promise.reject(new Error('no'))).kept, /no/)
})
