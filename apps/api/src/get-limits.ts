import { LIMIT_DETAILS, type LimitName, type Limits } from '@sluice/contract'
import type { Handle } from './call.ts'

/** GET /limits: every bound that a request can meet, with its unit. */
export function getLimits(limits: Limits, waitSeconds: number): Handle {
  const names = Object.keys(LIMIT_DETAILS) as LimitName[]
  const body = {
    limits: Object.fromEntries(names.map((name) => [name, { value: limits[name], ...LIMIT_DETAILS[name] }])),
    waitSeconds: {
      value: waitSeconds,
      unit: 'seconds',
      description: 'How long a caller that waits gets no answer at most.',
    },
  }
  return async () => ({ status: 200, body })
}
