// The part of the verdict that is about Redis.
import type { Finding } from '@sluice/contract'
import { alive, duration, type Facts, type Findings, finding, megabytes, NEARLY_FULL } from './finding.ts'

/**
 * If the clock of Redis is this far behind the stamps, the stamps (places in the order of acceptance) are no longer
 * times.
 */
const CLOCK_BEHIND_MS = 5_000

/** Finds why Redis refuses writes or may lose them. Because of it, processes stop or can't show that they live. */
export function judgeRedisFaults({ redis: { faults = [] } }: Facts): Finding[] {
  return faults.map((fault) => finding('redis_unfit', fault.replace(/\.$/, '')))
}

/** Finds what else is wrong with Redis. */
export function* judgeRedis({ redis, processes }: Facts): Findings {
  const { usedBytes, maxBytes, replicas, clockBehindMs = 0 } = redis
  const share = maxBytes > 0 ? usedBytes / maxBytes : 0
  const used = `${megabytes(usedBytes)} of ${megabytes(maxBytes)}`
  if (share >= 1) yield finding('redis_full', `Redis is full (${used}) and refuses writes`)
  else if (share >= NEARLY_FULL) yield finding('redis_full', `Redis is nearly full: ${used}`)
  const wanted = Math.max(0, ...alive(processes, 'api').map(({ redisReplicas = 0 }) => redisReplicas))
  if (replicas !== undefined && replicas < wanted)
    yield finding('redis_replicas', `Redis has ${replicas} of ${wanted} replicas: requests are not confirmed`)
  if (clockBehindMs >= CLOCK_BEHIND_MS)
    yield finding('redis_clock', `The clock of Redis is ${duration(clockBehindMs)} behind`)
}
