// Imports whose callers do not wait: enqueues an import and answers 202, and answers GET /batches/{id}.
import { type ImportProgressAnswer, PROBLEMS } from '@sluice/contract'
import { type FoundImport, type ImportEnd, isJobId, newJobId, orUnavailable } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import { jsonAnswer } from '../request/json-answer.ts'
import { asProblem, jobFailed, ProblemError, problemBody } from '../request/problem-error.ts'
import type { Answer, Handler, RequestContext } from '../request/request-context.ts'
import { type RoomDeps, reading } from '../sources/look-ups.ts'
import type { ImportGroups } from './group-items.ts'
import { enqueuePatiently, type ImportRun } from './store-groups.ts'

type AsyncRun = ImportRun & {
  deps: Pick<ApiDeps, 'imports'>
  context: Pick<RequestContext, 'key' | 'log' | 'startedAt'>
}

/**
 * Answers as soon as all groups are in Redis. If the import ends early, its problem has a Location, where the
 * caller can look up the enqueued groups.
 */
export async function enqueueImport(groups: ImportGroups, run: AsyncRun): Promise<Answer> {
  const { imports, confirmReplicated } = run.deps
  const { tenant, requestId, log } = run.context
  const id = newJobId()
  log.importId = id
  const location = `/batches/${id}`
  const enqueued = { received: 0, jobs: 0, failed: 0, refused: run.problems.kept }
  const by = run.context.key?.keyId ?? ''
  const open = (end: { ended?: ImportEnd } = {}) => orUnavailable(imports.open(id, { tenant, by, ...enqueued, ...end }))
  try {
    for await (const { items, threads } of groups) {
      if (threads.length > 0) {
        const places = items.flatMap((item) => ('thread' in item ? [item.index] : []))
        const job = { threads, retained: false, import: { id, places } }
        await enqueuePatiently(job, newJobId(threads[0]?.source.externalId), run)
        enqueued.jobs += 1
      }
      enqueued.received += items.length
      enqueued.failed += items.length - threads.length
      for (const item of items) if ('result' in item) run.problems.keep(item)
    }
  } catch (error) {
    if (enqueued.received === 0) throw error
    // The caller needs the problem that ended its import, even if Redis is away and nothing can be looked up.
    await open({ ended: 'cut' }).catch(() => {})
    const problem = asProblem(error)
    if (problem === undefined) throw error
    throw new ProblemError(problem.code, problem.members, { ...problem.headers, location })
  }
  await open()
  await confirmReplicated(id, run.context.startedAt).catch(() => {
    throw new ProblemError('acceptance_unknown', {}, { location })
  })
  const found = await orUnavailable(imports.find(id))
  if (found === undefined) throw new ProblemError('queue_unavailable')
  const headers = { location, 'preference-applied': 'respond-async' }
  return { status: 202, body: describeImport(id, found, requestId), headers }
}

/** GET /batches/{id}: the progress of an import whose caller does not wait. */
export function getImport(deps: RoomDeps & Pick<ApiDeps, 'imports'>): Handler {
  return async (context, params) => {
    const { tenant, requestId, log } = context
    const id = String(params.id)
    log.importId = id
    if (!isJobId(id)) throw new ProblemError('import_unknown')
    return reading(deps, context, async () => {
      const found = await orUnavailable(deps.imports.find(id, tenant))
      if (found === undefined) throw new ProblemError('import_unknown')
      return jsonAnswer(deps, context, describeImport(id, found, requestId))
    })
  }
}

function describeImport(
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
