import { LIMIT_DETAILS, type LimitName, type Limits } from '@sluice/contract'
import { BATCH_LIMITS } from './api-settings.ts'
import type { Handle } from './call.ts'

/** GET /limits: every bound that a request can meet, with its unit. */
export function getLimits(
  limits: Limits,
  { waitSeconds, batchBytes }: { waitSeconds: number; batchBytes: number },
): Handle {
  const names = Object.keys(LIMIT_DETAILS) as LimitName[]
  const body = {
    limits: {
      ...Object.fromEntries(names.map((name) => [name, { value: limits[name], ...LIMIT_DETAILS[name] }])),
      batchBytes: limitOf(BATCH_LIMITS.batchBytes, batchBytes),
      batchItems: limitOf(BATCH_LIMITS.batchItems),
    },
    waitSeconds: {
      value: waitSeconds,
      unit: 'seconds',
      description: 'How long a caller that waits gets no answer at most.',
    },
  }
  return async () => ({ status: 200, body })
}

function limitOf(limit: { default: number; unit: string; description: string }, value = limit.default) {
  const { unit, description } = limit
  return { value, unit, description }
}
