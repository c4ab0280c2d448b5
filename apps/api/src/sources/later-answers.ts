// Other answers of POST /sources: the result of an earlier job with the Idempotency-Key, or an unfinished job's id.
import { acceptedAnswer, type ParsedText } from '@sluice/contract'
import { claimName, type JobResult } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import { idempotencyKeyInvalid, jobUndecided } from '../request/problem-error.ts'
import type { Answer, RequestContext } from '../request/request-context.ts'

/** A thread as its caller posted it. */
export type Posted = Extract<ParsedText, { ok: true }>

/** 202 with the job's id. @throws {ProblemError} 504 if the caller waits and its request names no `wait`. */
export function unfinishedAnswer({ prefer }: RequestContext, { thread, warnings }: Posted, jobId: string): Answer {
  if (prefer.waits && prefer.wait === undefined) throw jobUndecided('job_pending', jobId)
  const applied = [
    ...(prefer.respondAsync ? ['respond-async'] : []),
    ...(prefer.wait === undefined ? [] : [`wait=${prefer.wait}`]),
    ...(prefer.strict ? [STRICT] : []),
  ]
  const headers = { location: `/jobs/${jobId}`, 'preference-applied': applied.join(', ') }
  return { status: 202, body: { ...acceptedAnswer(thread), warnings }, headers }
}

/** The preference for strict checks, as an answer confirms it. */
export const STRICT = 'handling=strict'

/**
 * An Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07): a string of RFC 8941, section 3.3.3, or its
 * content alone, because most clients send a bare UUID. A header that was sent twice has a comma, and does not match.
 */
export const KEY_FORM = /^(?:"((?:[ !#-[\]-~]|\\["\\]){1,255})"|([!#-+\--:<-[\]-~]{1,255}))$/

/** The claim of a request with an Idempotency-Key, the same for `"abc"` and `abc`. @throws {ProblemError} 400. */
export function claimOf(tenant: string, header: string | string[]): { claim: string } {
  const [, quoted, bare] = KEY_FORM.exec(String(header)) ?? []
  const key = quoted?.replaceAll(/\\(.)/g, '$1') ?? bare
  if (key !== undefined) return { claim: claimName(tenant, key) }
  throw idempotencyKeyInvalid(
    `Idempotency-Key must have 1 to 255 visible ASCII characters and be given once: a string in quotation marks (RFC 8941), or without them if it has no space, comma, semicolon, backslash or quotation mark.`,
  )
}

/**
 * Waits for the job of an earlier request with the same key. A claim keeps the result longer than Redis knows the job.
 * Resolves with undefined if the job is not done in time, or if `signal` aborts.
 */
export async function joinJob(
  { findClaimed, replyListener }: Pick<ApiDeps, 'findClaimed' | 'replyListener'>,
  { signal }: Pick<RequestContext, 'signal'>,
  jobId: string,
  claim: string | undefined,
  ms: number,
): Promise<JobResult | undefined> {
  const find = async () => (claim === undefined ? undefined : findClaimed(claim, jobId).catch(() => undefined))
  const wait = () => replyListener.wait(jobId, ms, signal, { lookUpAtOnce: true }).result
  try {
    return (await find()) ?? (await wait()) ?? (await find())
  } catch (error) {
    const late = await find()
    if (late === undefined) throw error
    return late
  }
}
