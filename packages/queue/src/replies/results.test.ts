import assert from 'node:assert/strict'
import { it, vi } from 'vitest'
import { createRetainLater } from './results.ts'

const payload = { tenant: 'acme', threads: [] }
const TRY_EVERY_MS = 500

it('tries until Redis answers, and retains each job with its payload', async (t) => {
  vi.useFakeTimers()
  t.onTestFinished(() => void vi.useRealTimers())
  let isAway = true
  const retained: unknown[] = []
  const retainLater = createRetainLater({
    async retainResult(...args) {
      if (isAway) throw new Error('away')
      retained.push(args)
      return undefined
    },
  })
  retainLater('a', payload)
  retainLater('b', payload)
  await vi.advanceTimersByTimeAsync(3 * TRY_EVERY_MS)
  isAway = false
  await vi.advanceTimersByTimeAsync(2 * TRY_EVERY_MS)
  assert.deepEqual(retained, [
    ['a', JSON.stringify(payload), 'acme'],
    ['b', JSON.stringify(payload), 'acme'],
  ])
})

it('keeps payloads within a bound of memory, and the ids beyond it', async () => {
  const datas: (string | undefined)[] = []
  const retainLater = createRetainLater({
    async retainResult(_, data) {
      datas.push(data)
      return undefined
    },
  })
  const done = vi.waitUntil(() => datas.length === 3)
  const large = { tenant: 'x'.repeat(20 * 1024 * 1024), threads: [] }
  for (const jobId of ['a', 'b']) retainLater(jobId, large)
  retainLater('c', payload)
  await done
  assert.deepEqual(
    datas.map((data) => data?.length),
    [JSON.stringify(large).length, 0, JSON.stringify(payload).length],
  )
})
