// Answers of any size: what they cost the caller's key, and the memory that they take until they are read.
import type { ApiDeps } from '../api-deps.ts'
import { FREE_ANSWER_BYTES } from '../settings.ts'
import type { Answer, RequestContext } from './request-context.ts'

/** @param paidBytes what the request has paid for already. */
export function chargeAnswer(context: Pick<RequestContext, 'chargedBytes'>, bytes: number, paidBytes = 0): void {
  context.chargedBytes += Math.max(0, bytes - FREE_ANSWER_BYTES - paidBytes)
}

/** Answers 200 with a body that may be large. @throws {ProblemError} 503 if there is no memory for it. */
export function jsonAnswer({ bodyMemory }: Pick<ApiDeps, 'bodyMemory'>, context: RequestContext, body: object): Answer {
  const content = JSON.stringify(body)
  chargeAnswer(context, Buffer.byteLength(content))
  // The answer stays in memory until its caller has read it.
  bodyMemory.reserve(context, content.length)
  return { status: 200, content }
}
