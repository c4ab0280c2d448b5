import assert from 'node:assert/strict'
import { afterEach, test, vi } from 'vitest'
import { sendInChunks } from './commands.ts'

afterEach(() => void vi.useRealTimers())

test.each([
  { ms: 50, sizes: [250, 1_000, 1_000, 500] },
  { ms: 200, sizes: Array(11).fill(250) },
])(
  'after a first command of $ms ms, the others are as large as the speed of MongoDB allows',
  async ({ ms, sizes }) => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const items = Array.from({ length: 2_750 }, (_, at) => at)
    const sent: number[][] = []
    await sendInChunks(
      items,
      250,
      () => 1,
      async (some) => {
        vi.advanceTimersByTime(ms)
        sent.push(some)
      },
    )
    assert.deepEqual(sent.flat(), items)
    assert.deepEqual(
      sent.map(({ length }) => length),
      sizes,
    )
  },
)
