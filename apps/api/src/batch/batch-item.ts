import { createProblem, type Problem, type Thread } from '@sluice/contract'
import { ProblemError } from '../problem-error.ts'

/** An item that was refused. Its problem is kept as JSON, whose bytes can be counted. */
export interface RefusedItem {
  index: number
  externalId?: string
  status: number
  problem: string
}

/** One item of a batch: a thread, or why there is none. */
export type BatchItem = { index: number; thread: Thread } | RefusedItem

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
    return refuseItem(index, itemProblem(error, requestId), externalIdOf(body))
  }
}

/** An item that has this problem. */
export function refuseItem(index: number, problem: Problem, externalId?: string): RefusedItem {
  const told = { status: problem.status, problem: JSON.stringify(problem) }
  return externalId === undefined ? { index, ...told } : { index, externalId, ...told }
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
