// Imports whose callers do not wait: enqueues one and answers 202, and answers GET /batches/{id}.
import { type ImportProgressAnswer, PROBLEMS_KEPT, type Problem } from '@sluice/contract'
import { type FoundImport, type ImportProblem, isJobId, newJobId, orUnavailable } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import { fixedProblem, jobFailed, ProblemError } from '../request/problem-error.ts'
import type { Answer, Handler, RequestContext } from '../request/request-context.ts'
import { createPatientEnqueuer, type EnqueueGroupDeps } from './group-pipeline.ts'
import { type ImportGroup, itemProblem, problemOf, type RefusedItem, type RunImport } from './import-items.ts'

type AsyncImportDeps = EnqueueGroupDeps & Pick<ApiDeps, 'imports'>

/** Answers as soon as all of the import is in Redis. If its body ends early, what was accepted can be looked up all the same. */
export async function enqueueImport(deps: AsyncImportDeps, context: RequestContext, run: RunImport): Promise<Answer> {
  const { imports } = deps
  const id = newJobId()
  context.log.importId = id
  const { enqueued, submit } = createGroupEnqueuer(deps, context, id)
  const open = () => orUnavailable(imports.open(id, { tenant: context.tenant, ...enqueued }))
  const location = `/batches/${id}`
  try {
    const problem = await problemOf(run(submit, () => false))
    if (problem !== undefined) throw enqueued.received === 0 ? problem : withLocation(problem, location)
  } catch (error) {
    // The caller needs the problem that ended its import, even if Redis is away and nothing can be looked up.
    if (enqueued.received > 0) await open().catch(() => {})
    throw error
  }
  await open()
  const found = await orUnavailable(imports.find(id))
  if (found === undefined) throw fixedProblem('queue_unavailable')
  const headers = { location, 'preference-applied': 'respond-async' }
  return { status: 202, body: describeImport(id, found, context.requestId), headers }
}

/** GET /batches/{id}: the progress of an import whose caller does not wait. */
export function getImport({ imports }: Pick<ApiDeps, 'imports'>): Handler {
  return async ({ tenant, requestId, log }, params) => {
    const id = String(params.id)
    log.importId = id
    const found = isJobId(id) ? await orUnavailable(imports.find(id)) : undefined
    if (found?.tenant !== tenant) throw fixedProblem('import_unknown')
    return { status: 200, body: describeImport(id, found, requestId) }
  }
}

/** The part of an import that was enqueued. */
interface Enqueued {
  received: number
  jobs: number
  failed: number
  /** The first refused items, as many as the answer lists. */
  refused: ImportProblem[]
}

function createGroupEnqueuer(deps: AsyncImportDeps, context: RequestContext, id: string) {
  const enqueued: Enqueued = { received: 0, jobs: 0, failed: 0, refused: [] }
  const keep = createKeeper(enqueued.refused)
  const enqueue = createPatientEnqueuer(deps, context, { at: Date.now() })
  return {
    enqueued,
    async submit({ items, threads }: ImportGroup): Promise<void> {
      if (threads.length > 0) {
        const places = items.flatMap((item) => ('thread' in item ? [item.index] : []))
        await enqueue(newJobId(), { threads, retained: false, import: { id, places } })
        enqueued.jobs += 1
      }
      enqueued.received += items.length
      enqueued.failed += items.length - threads.length
      for (const item of items) if ('problem' in item) keep(item)
    },
  }
}

/** The bounds of what Redis keeps: the problems of one import, in bytes, and the faults of one item. */
const PROBLEM_BYTES_KEPT = 1024 * 1024
const FAULTS_KEPT = 5

function createKeeper(kept: ImportProblem[]): (item: RefusedItem) => void {
  let isFull = false
  let bytes = 0
  return ({ status: _, problem, ...about }) => {
    if (isFull) return
    const item = { ...about, refused: shorten(problem) }
    bytes += Buffer.byteLength(JSON.stringify(item))
    isFull = bytes > PROBLEM_BYTES_KEPT || kept.length === PROBLEMS_KEPT
    if (!isFull) kept.push(item)
  }
}

/** The problem with its first few faults. Its `total` counts all. */
function shorten(json: string): Problem {
  const problem: Problem = JSON.parse(json)
  return problem.errors === undefined ? problem : { ...problem, errors: problem.errors.slice(0, FAULTS_KEPT) }
}

function describeImport(
  id: string,
  { done, received, counts, problems }: FoundImport,
  requestId: string,
): ImportProgressAnswer {
  return {
    id,
    state: done ? 'completed' : 'active',
    summary: { received, ...counts },
    problems: problems.map((problem) => describeProblem(problem, requestId)),
  }
}

function describeProblem({ refused, jobId, ...about }: ImportProblem, requestId: string) {
  return { ...about, problem: refused ?? itemProblem(jobFailed(jobId), requestId) }
}

function withLocation({ code, members, headers }: ProblemError, location: string): ProblemError {
  return new ProblemError(code, members, { ...headers, location })
}
