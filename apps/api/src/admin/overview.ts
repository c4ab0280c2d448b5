// GET /admin/overview: the state of the whole at a moment, and what happened lately.
import type { Status } from '@sluice/contract'
import { orUnavailable } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import type { Handler } from '../request/request-context.ts'

/** The shorter of the two spans of the answer, in minutes. */
const MINUTES = 5

export function getOverview({ readOverview, readHistory }: Pick<ApiDeps, 'readOverview' | 'readHistory'>): Handler {
  return async () => {
    const reads = Promise.all([readOverview(), readHistory(MINUTES), readHistory(60)])
    const [overview, [lastMinutes], [lastHour]] = await orUnavailable(reads)
    if (lastMinutes === undefined || lastHour === undefined) throw new Error('a span without a point')
    return { status: 200, body: { ...overview, lastMinutes, lastHour } satisfies Status }
  }
}
