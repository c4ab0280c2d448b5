import { createProblem, type Problem, type Thread } from '@sluice/contract'
import { ProblemError } from '../problem-error.ts'

/** One item of a batch: a thread, or why there is none. */
export type BatchItem = { index: number } & ({ thread: Thread } | { problem: Problem; externalId?: string })

/** Takes an item's value for a thread; whatever is wrong with it is the item's own problem. */
export function readItem(
  index: number,
  requestId: string,
  read: () => unknown,
  parse: (body: unknown) => Thread,
): BatchItem {
  let body: unknown
  try {
    body = read()
    return { index, thread: parse(body) }
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    const externalId = externalIdOf(body)
    const problem = itemProblem(error, requestId)
    return externalId === undefined ? { index, problem } : { index, problem, externalId }
  }
}

/** The body of a problem that one item of a batch has. */
export function itemProblem({ code, members }: ProblemError, requestId: string): Problem {
  return createProblem(code, { ...members, instance: '/sources', requestId })
}

/** Enough to find the item by; what is longer is no externalId anyway. */
const EXTERNAL_ID_SHOWN = 512

function externalIdOf(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('externalId' in body)) return undefined
  const { externalId } = body
  return typeof externalId === 'string' && externalId.length <= EXTERNAL_ID_SHOWN ? externalId : undefined
}
