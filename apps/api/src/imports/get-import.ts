// GET /batches/{id}: the progress of an import.
import { type ImportProgressAnswer, PROBLEMS } from '@sluice/contract'
import { type FoundImport, isJobId, orUnavailable } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import { jobFailed, ProblemError, problemBody } from '../request/problem-error.ts'
import type { Handler } from '../request/request-context.ts'
import { jsonAnswer, type RoomDeps, readWithinLimits } from '../request/shares.ts'

/** GET /batches/{id}: the progress of an import whose caller does not wait. */
export function getImport(deps: RoomDeps & Pick<ApiDeps, 'imports'>): Handler {
  return async (context, params) => {
    const { tenant, requestId, log } = context
    const id = String(params.id)
    log.importId = id
    if (!isJobId(id)) throw new ProblemError('import_unknown')
    return readWithinLimits(deps, context, async () => {
      const found = await orUnavailable(deps.imports.find(id, tenant))
      if (found === undefined) throw new ProblemError('import_unknown')
      return jsonAnswer(deps, context, importProgress(id, found, requestId))
    })
  }
}

/** Describes the progress of an import. */
export function importProgress(
  id: string,
  { done, isWaitedFor, ended, received, counts, problems, waitsFor }: FoundImport,
  requestId: string,
): ImportProgressAnswer {
  return {
    id,
    state: !done ? 'active' : isWaitedFor && ended === 'cut' ? 'stopped' : 'completed',
    summary: { received, ...counts },
    ...(waitsFor && { waitsFor: PROBLEMS[waitsFor].title }),
    problems: problems.map(({ refused, jobId, ...about }) => {
      return { ...about, problem: refused ?? problemBody(jobFailed(jobId), '/sources', requestId) }
    }),
  }
}
