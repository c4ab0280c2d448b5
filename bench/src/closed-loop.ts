import { Pool } from 'undici'
import type { MadeThread } from './threads.ts'

/** What a run of requests came to; times in ms. */
export interface Run {
  rate: number
  p50: number
  p99: number
  failed: number
}

/** So many callers post, each one request after the other. */
export async function closedLoop(url: string, key: string, threads: readonly MadeThread[], callers: number): Promise<Run> {
  const pool = new Pool(url, { connections: callers })
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const times: number[] = []
  let failed = 0
  let next = 0
  const began = performance.now()
  async function caller(): Promise<void> {
    for (let thread = threads[next++]; thread !== undefined; thread = threads[next++]) {
      const sent = performance.now()
      const { statusCode, body } = await pool.request({ method: 'POST', path: '/sources', headers, body: thread.body })
      await body.arrayBuffer()
      times.push(performance.now() - sent)
      if (statusCode !== 200) failed += 1
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  const seconds = (performance.now() - began) / 1000
  await pool.close()
  return { rate: threads.length / seconds, ...percentiles(times), failed }
}

/** The median and the 99th percentile. */
export function percentiles(times: number[]): { p50: number; p99: number } {
  const sorted = times.sort((one, other) => one - other)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { p50: at(0.5), p99: at(0.99) }
}
