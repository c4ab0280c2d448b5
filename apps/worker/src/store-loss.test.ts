import assert from 'node:assert/strict'
import { beforeEach, test, vi } from 'vitest'
import { createWatchStore } from './store-loss.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout'] })
  return () => void vi.useRealTimers()
})

/**
 * A watched store whose probe takes a time, or fails. `pass` lets time pass, with a heartbeat each
 * second.
 */
function watched() {
  const state = { probes: 0, takesMs: 0, error: '', runningMs: 0 }
  const probe = async () => {
    state.probes += 1
    const { error } = state
    if (state.takesMs > 0) await new Promise((resolve) => setTimeout(resolve, state.takesMs))
    if (error !== '') throw new Error(error)
  }
  const watch = createWatchStore(probe, () => state.runningMs)
  async function pass(seconds: number) {
    for (let second = 0; second < seconds; second++) {
      watch.outage()
      await vi.advanceTimersByTimeAsync(1_000)
    }
  }
  return { state, watch, pass }
}

test('a store is unavailable while it refuses probes, also of a worker without jobs; a slow one is not', async () => {
  const { state, watch, pass } = watched()
  assert.equal(watch.tookMs(), undefined)
  await pass(10)
  assert.deepEqual(
    [watch.outage(), watch.tookMs(), state.probes],
    [undefined, 0, 3],
    'every five seconds',
  )
  state.takesMs = 3_000
  await pass(10)
  assert.deepEqual([watch.outage(), watch.tookMs()], [undefined, 3_000])
  Object.assign(state, { takesMs: 0, error: 'refused' })
  await pass(6)
  assert.equal(watch.outage()?.reason, 'refused')
  const { ms = 0 } = watch.outage() ?? {}
  await pass(4)
  assert.equal(watch.outage()?.ms, ms + 4_000, 'the same outage')
  state.error = ''
  await pass(2)
  assert.equal(watch.outage(), undefined)
})

test('a batch that runs for long has the store probed at once, and a hang began with the batch', async () => {
  const { state, watch, pass } = watched()
  await pass(1)
  Object.assign(state, { error: 'no answer', runningMs: 4_000 })
  await pass(1)
  assert.deepEqual(watch.outage(), { ms: 5_000, reason: 'no answer' })
})

test('those who ask at the same time share a probe', async () => {
  const { state, watch } = watched()
  await Promise.all([watch.ask(), watch.ask()])
  await watch.ask()
  assert.equal(state.probes, 1)
})
