import type { FoundImport, ImportProblem, Imports } from '@sluice/queue'
import type { Call, Handle } from '../call.ts'
import { queueUnavailable } from '../enqueue.ts'
import { jobFailed } from '../post-source.ts'
import { ProblemError } from '../problem-error.ts'
import { itemProblem } from './batch-item.ts'

/** GET /batches/{id}: how far a batch has got that nobody waits for. */
export function getBatch(batches: Imports): Handle {
  return async (call) => {
    const id = String(call.params.id)
    call.log.batchId = id
    return { status: 200, body: describeBatch(id, await find(batches, call, id), call.requestId) }
  }
}

async function find(batches: Imports, { tenant }: Call, id: string): Promise<FoundImport> {
  const found = await batches.find(id).catch(() => {
    throw queueUnavailable()
  })
  if (found?.tenant === tenant) return found
  throw new ProblemError('batch_unknown', {
    detail: 'There is no batch of this id, or it is too long ago that it finished.',
  })
}

/** What is told of a batch. */
export function describeBatch(id: string, { done, received, counts, problems }: FoundImport, requestId: string) {
  const state = done ? 'completed' : 'active'
  const told = problems.map((problem) => describeProblem(problem, requestId))
  return { id, state, summary: { received, ...counts }, problems: told }
}

function describeProblem({ index, externalId, refused }: ImportProblem, requestId: string) {
  const problem = refused ?? itemProblem(jobFailed(), requestId)
  return externalId === undefined ? { index, problem } : { index, externalId, problem }
}
