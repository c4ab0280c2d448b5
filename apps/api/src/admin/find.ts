// Operators' views of all tenants: GET /admin/find searches the queue and the store and streams the hits, GET
// /admin/recent lists the jobs that completed last, GET /admin/overview shows the current state.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type FindLine, NDJSON, parseFindQuery, parseRecentJobsQuery, type Status } from '@sluice/contract'
import { asViewersSee } from '@sluice/operations'
import { orUnavailable } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import { writeHead } from '../request/middleware.ts'
import { asProblem } from '../request/problem-error.ts'
import { type Handler, STREAMED } from '../request/request-context.ts'
import { isViewer, parseAdminQuery } from './admin-jobs.ts'

/** @throws {ProblemError} if the search fails before its first line. If it fails later, its last line says why. */
export function findEverything(deps: Pick<ApiDeps, 'find' | 'stopping' | 'enqueuer'>): Handler {
  return async (context) => {
    const { response, signal, log } = context
    const query = parseAdminQuery(context, parseFindQuery)
    try {
      const lines = deps.find(query, signal)
      const first = await lines.next()
      writeHead(deps, context, { status: 200, headers: { 'content-type': NDJSON } })
      await pipeline(Readable.from(texts(first, lines)), response)
    } catch (error) {
      throw signal.aborted ? signal.reason : error
    }
    return STREAMED

    function textOf(line: FindLine): string {
      const shown = 'hit' in line && isViewer(context) ? { hit: asViewersSee.hit(line.hit) } : line
      return `${JSON.stringify(shown)}\n`
    }

    async function* texts(first: IteratorResult<FindLine>, rest: AsyncGenerator<FindLine>): AsyncGenerator<string> {
      try {
        if (!first.done) yield textOf(first.value)
        for await (const line of rest) yield textOf(line)
      } catch (error) {
        const problem = asProblem(error)
        if (problem === undefined) throw error
        log.code = problem.code
        yield textOf({ problem: problem.message })
      }
    }
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
