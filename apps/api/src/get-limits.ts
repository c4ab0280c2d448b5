import { LIMIT_DETAILS, type LimitName, type Limits } from '@sluice/contract'
import { ARRAY_ITEMS } from './batch/post-batch.ts'
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
      batchBytes: {
        value: batchBytes,
        unit: 'bytes',
        description: 'Size of a batch in NDJSON, before and after it is inflated.',
      },
      batchItems: {
        value: ARRAY_ITEMS,
        unit: 'threads',
        description: 'Number of threads in a batch that is sent as a JSON array.',
      },
    },
    waitSeconds: {
      value: waitSeconds,
      unit: 'seconds',
      description: 'How long a caller that waits gets no answer at most.',
    },
  }
  return async () => ({ status: 200, body })
}
