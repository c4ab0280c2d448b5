// Samples memory and queue length over time, while a test puts Sluice under load.
import { setTimeout as pause } from 'node:timers/promises'
import { connectRetrying } from '@sluice/process/redis'
import type { QueueView } from '../support/open-queue.ts'
import { residentBytes } from '../support/resident-bytes.ts'
import type { TestSluice } from '../support/start-sluice.ts'

/** One moment. Sizes in MB. */
export interface Sample {
  seconds: number
  redis: number
  api: number
  worker: number
  /** Jobs of both lanes that are not completed. */
  jobs: number
}

const EVERY_MS = 500

/** Samples until the signal aborts. */
export async function sampleLoad(
  sluice: TestSluice,
  view: QueueView,
  signal: AbortSignal,
): Promise<Sample[]> {
  const redis = connectRetrying({ redisUrl: sluice.settings.REDIS_URL ?? '', queue: '' }, () => {})
  const began = performance.now()
  const samples: Sample[] = []
  while (!signal.aborted) {
    const [memory, api, worker, jobs] = await Promise.all([
      redis.info('memory'),
      residentBytes(sluice.api.pid),
      residentBytes(sluice.workers[0]?.pid ?? 0),
      view.left(),
    ])
    const used = Number(/^used_memory:(\d+)/m.exec(memory)?.[1])
    const seconds = (performance.now() - began) / 1000
    samples.push({ seconds, redis: used / 1e6, api: api / 1e6, worker: worker / 1e6, jobs })
    await pause(EVERY_MS, undefined, { signal }).catch(() => {})
  }
  redis.disconnect()
  return samples
}
