import assert from 'node:assert/strict'
import type { ImportProgress } from '@sluice/client'
import { afterEach, test, vi } from 'vitest'
import { sayWhyItWaits } from './say-why.ts'

afterEach(() => void vi.useRealTimers())

test('an import without progress asks why, and says each reason once; one with progress asks nothing', async () => {
  vi.useFakeTimers()
  const about = {
    id: 'i',
    summary: { received: 0, created: 0, updated: 0, unchanged: 0, failed: 0 },
    problems: [],
  }
  const active = { ...about, state: 'active' as const }
  const answers: (ImportProgress | undefined)[] = [
    undefined,
    active,
    { ...active, waitsFor: 'Queue full' },
    { ...active, waitsFor: 'Queue full' },
    { ...about, state: 'completed' },
  ]
  const said: string[] = []
  let settled = 0
  const why = sayWhyItWaits({
    client: { getImport: async () => answers.shift() },
    importId: 'i',
    settled: () => settled,
    say: (line) => void said.push(line),
  })
  for (let look = 0; look < 5; look++) await vi.advanceTimersByTimeAsync(5_000)
  assert.deepEqual(said, [
    'Waiting: the service has accepted threads, and has not stored them yet.',
    'Waiting: Queue full.',
  ])
  answers.push(active)
  settled = 1
  await vi.advanceTimersByTimeAsync(5_000)
  assert.equal(answers.length, 1)
  why[Symbol.dispose]()
})
