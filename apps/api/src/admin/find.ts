// Operators' views of all tenants: GET /admin/find looks a text up in the queue and the store, GET /admin/recent lists
// the jobs that completed last, GET /admin/overview shows the current state.
import { parseFindQuery, parseRecentJobsQuery, type Status } from '@sluice/contract'
import { asViewersSee } from '@sluice/operations'
import { orUnavailable } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import type { Handler } from '../request/request-context.ts'
import { parseAdminQuery, shownTo } from './admin-jobs.ts'

/** GET /admin/find. */
export function findEverything({ find }: Pick<ApiDeps, 'find'>): Handler {
  return async (context) => {
    const query = parseAdminQuery(context, parseFindQuery)
    return shownTo(context, await find(query, context.signal), asViewersSee.found)
  }
}

/** GET /admin/recent. */
export function listRecentJobs({ listRecent }: Pick<ApiDeps, 'listRecent'>): Handler {
  return async (context) => {
    const query = parseAdminQuery(context, parseRecentJobsQuery)
    return { status: 200, body: await orUnavailable(listRecent(query)) }
  }
}

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
