import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'vitest'
import { aThread, postThread, type Target } from '../support/post-thread.ts'
import { startSluice } from '../support/start-sluice.ts'

const REFUSED = 'a title that the store refuses'
/** One of this number of imported threads is refused. */
const REFUSED_EVERY = 20
const IMPORTED = 800
/** A refused thread is tried five times in a quarter of a minute. */
const SECONDS = 10
/** Only the usual times are read from these. */
const HEALTHY_SECONDS = 4
const CALLERS = 4
/** Below this time a pause of a busy machine decides, in ms. */
const NOISE_MS = 150

test('imported threads that the store refuses delay no interactive post by more than a second', async (t) => {
  const sluice = await startSluice(t)
  await sluice.db.createCollection('sources', { validator: { title: { $ne: REFUSED } } })
  const healthy = await postDuringImport(sluice, () => false, HEALTHY_SECONDS)
  const refused = await postDuringImport(sluice, (at) => at % REFUSED_EVERY === 0, SECONDS)
  await t.annotate(`without refused threads ${inWords(healthy)}; with them ${inWords(refused)}`)
  assert(
    p99(refused) <= 3 * Math.max(p99(healthy), NOISE_MS),
    `${inWords(healthy)}; with refused threads ${inWords(refused)}`,
  )
  assert(Math.max(...refused) < 1_000, inWords(refused))
})

/**
 * Imports threads, and returns how long interactive posts took in these seconds after that, in ms.
 */
async function postDuringImport(
  { url, key }: Target,
  isRefused: (at: number) => boolean,
  seconds: number,
): Promise<number[]> {
  const threads = Array.from({ length: IMPORTED }, (_, at) => ({
    ...aThread({ quotes: 1 }),
    ...(isRefused(at) && { title: REFUSED }),
  }))
  const headers = {
    'x-api-key': key,
    'content-type': 'application/x-ndjson',
    prefer: 'respond-async',
  }
  const body = threads.map((thread) => JSON.stringify(thread)).join('\n')
  const response = await fetch(`${url}/sources:batch`, { method: 'POST', headers, body })
  assert.equal(response.status, 202)
  await response.arrayBuffer()
  const end = performance.now() + seconds * 1000
  const times: number[] = []
  async function postUntilEnd(): Promise<void> {
    while (performance.now() < end) {
      const { status, ms } = await postThread({ url, key }, aThread())
      assert.equal(status, 200)
      times.push(ms)
      await pause(20)
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, postUntilEnd))
  return times
}

function p99(times: readonly number[]): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length * 0.99)] ?? 0
}

function inWords(times: readonly number[]): string {
  return `p99 ${p99(times).toFixed()} ms and at most ${Math.max(...times).toFixed()} ms of ${times.length}`
}
