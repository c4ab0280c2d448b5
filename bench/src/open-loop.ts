import { setTimeout as pause } from 'node:timers/promises'
import { percentiles, type Run } from './percentiles.ts'
import { createPoster } from './poster.ts'
import type { MadeThread } from './threads.ts'

/** One request of an open loop. */
export interface Sample {
  /** When it was due, in the time of `performance.now()`. */
  due: number
  /** From that moment to its answer, in ms: the latency of a caller that posts at that moment. */
  took: number
  failed: boolean
}

export interface OpenLoop {
  urls: readonly string[]
  key: string
  threads: Iterable<MadeThread>
  /** Requests a second, evenly spaced, also while answers are late. */
  rate: number
  /** After it aborts, the loop sends nothing more, and ends when all requests are answered. */
  signal: AbortSignal
}

/**
 * More connections than requests in flight, unless the contender falls behind: then requests wait
 * here, and that time counts.
 */
const CONNECTIONS = 256

/** Posts at a fixed rate. The timer's own lateness of up to a millisecond is part of each time. */
export async function openLoop({ urls, key, threads, rate, signal }: OpenLoop): Promise<Sample[]> {
  const poster = createPoster(urls, key, CONNECTIONS)
  const samples: Sample[] = []
  const open = new Set<Promise<void>>()
  const began = performance.now()
  let sent = 0
  for (const { body } of threads) {
    const due = began + (sent++ / rate) * 1000
    const early = due - performance.now()
    if (early > 0) await pause(early)
    if (signal.aborted) break
    const answered: Promise<void> = poster.post(body).then((status) => {
      samples.push({ due, took: performance.now() - due, failed: status !== 200 })
      open.delete(answered)
    })
    open.add(answered)
  }
  await Promise.all(open)
  await poster.close()
  return samples
}

/** The rate and percentiles of the samples. */
export function runOf(samples: readonly Sample[]): Run {
  const ends = samples.map(({ due, took }) => due + took)
  const seconds = (latest(ends) - (samples[0]?.due ?? 0)) / 1000
  const failed = samples.filter((sample) => sample.failed).length
  return {
    threads: samples.length,
    rate: samples.length / seconds,
    ...percentiles(samples.map(({ took }) => took)),
    failed,
  }
}

function latest(times: readonly number[]): number {
  return times.reduce((one, other) => Math.max(one, other), 0)
}
