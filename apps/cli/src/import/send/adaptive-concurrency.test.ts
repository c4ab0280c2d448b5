import assert from 'node:assert/strict'
import { test } from 'vitest'
import { type AdaptiveConcurrency, createAdaptiveConcurrency } from './adaptive-concurrency.ts'

/**
 * A service that stores a batch in `soloMs`, and `parallel` of them at a time; more only wait longer. Noise changes each answer by some percent.
 * Returns the throughput of the last half.
 */
function simulate(service: { soloMs: number; parallel: number; noise?: number }, batches: number, fixed?: number) {
  let now = 0
  let seed = 7
  const random = () => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed / 2_147_483_647
  }
  const adaptive: AdaptiveConcurrency = createAdaptiveConcurrency(() => now)
  const limit = () => fixed ?? adaptive.limit()
  const ends: number[] = []
  const servers = Array.from({ length: service.parallel }, () => 0)
  const begin = () => {
    const server = servers.indexOf(Math.min(...servers))
    const took = service.soloMs * (1 + (service.noise ?? 0) * (random() - 0.5))
    const end = Math.max(now, servers[server] ?? 0) + took
    servers[server] = end
    ends.push(end)
  }
  let half = 0
  for (let at = 0; at < batches; at++) {
    while (ends.length < limit()) begin()
    now = Math.min(...ends)
    ends.splice(ends.indexOf(now), 1)
    adaptive.completed(100, true)
    if (at === batches / 2) half = now
  }
  return { rate: batches / 2 / (now - half), limit: limit() }
}

for (const service of [
  { soloMs: 100, parallel: 1 },
  { soloMs: 100, parallel: 3, noise: 0.2 },
  { soloMs: 40, parallel: 6, noise: 0.4 },
  { soloMs: 300, parallel: 20, noise: 0.2 },
]) {
  test(`throughput is at least 0.95 of the best fixed concurrency: ${JSON.stringify(service)}`, () => {
    const best = Math.max(...[1, 2, 4, 8, 16, 32].map((fixed) => simulate(service, 4_000, fixed).rate))
    const { rate, limit } = simulate(service, 4_000)
    assert.ok(rate >= best * 0.95, `${rate / best} of the best, at ${limit}`)
  })
}

test('it does not grow beyond what pays', () => {
  assert.ok(simulate({ soloMs: 50, parallel: 4, noise: 0.1 }, 2_000).limit <= 10)
})

test('a refusal halves it, and those of batches that were in flight together count once', () => {
  let now = 0
  const adaptive = createAdaptiveConcurrency(() => now)
  while (adaptive.limit() < 16) {
    now += 500
    for (let at = 0; at < adaptive.limit(); at++) adaptive.completed(adaptive.limit(), true)
    now += 100
    adaptive.completed(adaptive.limit(), true)
  }
  const before = adaptive.limit()
  adaptive.throttled()
  adaptive.throttled()
  assert.equal(adaptive.limit(), Math.floor(before / 2))
  now += 1_000
  for (let at = 0; at < 10; at++) {
    adaptive.throttled()
    now += 1_000
  }
  assert.equal(adaptive.limit(), 1)
})

test('an input that is slower than the service says nothing about the limit', () => {
  let now = 0
  const adaptive = createAdaptiveConcurrency(() => now)
  for (let at = 0; at < 100; at++) {
    now += 300
    adaptive.completed(100 + at, false)
  }
  assert.equal(adaptive.limit(), 2)
})
