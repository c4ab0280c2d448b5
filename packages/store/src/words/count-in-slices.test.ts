import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { createSlices } from './count-words.ts'

describe('slices', () => {
  it('give one turn of the event loop no more than their time, shared by all work', async () => {
    const work = simulate({ sliceMs: 20, workers: 5, stepsEach: 100 })
    await work.done
    assert.equal(sum(work.stepsPerTurn), 500)
    // The slice, and one step that was asked for before it began.
    assert.ok(Math.max(...work.stepsPerTurn) <= 21, `${work.stepsPerTurn}`)
  })

  it('let all work go on by turns', async () => {
    const work = simulate({ sliceMs: 10, workers: 3, stepsEach: 100 })
    await work.done
    const lastTurns = work.finishedAtTurn
    assert.ok(Math.max(...lastTurns) - Math.min(...lastTurns) <= 6, `${lastTurns}`)
  })

  it('hold back nothing while there is time', async () => {
    const work = simulate({ sliceMs: 1000, workers: 5, stepsEach: 100 })
    await work.done
    assert.deepEqual(work.stepsPerTurn, [500])
  })
})

/** Work whose every step takes one millisecond of a clock of its own. */
function simulate({
  sliceMs,
  workers,
  stepsEach,
}: {
  sliceMs: number
  workers: number
  stepsEach: number
}) {
  let clock = 0
  let running = workers
  const stepsPerTurn = [0]
  const finishedAtTurn: number[] = []
  const slices = createSlices(sliceMs, () => clock)

  async function work(): Promise<void> {
    for (let step = 0; step < stepsEach; step++) {
      if (!slices.hasTime()) await slices.nextSlice()
      clock++
      stepsPerTurn.push((stepsPerTurn.pop() ?? 0) + 1)
    }
    running--
    finishedAtTurn.push(stepsPerTurn.length)
  }

  function watchTurns(): void {
    if (running > 0) setImmediate(watchTurns)
    if (running > 0) stepsPerTurn.push(0)
  }

  const done = Promise.all(Array.from({ length: workers }, work))
  watchTurns()
  return { done, stepsPerTurn, finishedAtTurn }
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
