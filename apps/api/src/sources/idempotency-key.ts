// Idempotency-Key of POST /sources (draft-ietf-httpapi-idempotency-key-header-07): its value, its claim, and the answer of an earlier request.
import { claimName, type JobResult } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import { waitForJob } from '../jobs/wait-for-job.ts'
import { idempotencyKeyInvalid } from '../problems.ts'
import type { RequestContext } from '../request-context.ts'

/** Most characters of a key, without quotation marks. */
const KEY_LENGTH = 255

/** A string of RFC 8941, section 3.3.3. No parameter is defined for it. */
const QUOTED = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/
/** Most clients send a bare UUID, as Stripe's do. A header that is sent twice arrives joined by a comma. */
const BARE = /^[!#-+\--:<-[\]-~]*$/

/** The claim of a request that has an Idempotency-Key. @throws {ProblemError} 400. */
export function claimOf(tenant: string, header: string | string[]): { claim: string } {
  return { claim: claimName(tenant, readKey(String(header))) }
}

/** Reads a key, the same for `"abc"` and `abc`. @throws {ProblemError} 400. */
function readKey(header: string): string {
  const quoted = QUOTED.exec(header)?.[1]
  const key = quoted === undefined ? header : quoted.replaceAll(/\\(.)/g, '$1')
  const isReadable = quoted !== undefined || BARE.test(header)
  if (isReadable && key.length >= 1 && key.length <= KEY_LENGTH) return key
  throw idempotencyKeyInvalid(
    `Idempotency-Key must have 1 to ${KEY_LENGTH} visible ASCII characters and be given once: a string in quotation marks (RFC 8941), or without them if it has no space, comma, semicolon, backslash or quotation mark.`,
  )
}

/**
 * Waits for the job of an earlier request with the same key. The result of a job that is done comes from its claim, which stays longer than other results.
 * Resolves with undefined if the job is not done in time, the caller hangs up, or the grace time is over.
 */
export async function joinJob(
  deps: Pick<ApiDeps, 'claims' | 'replyListener' | 'graceOver'>,
  context: RequestContext,
  jobId: string,
  claim: string | undefined,
  seconds: number,
): Promise<JobResult | undefined> {
  const find = async () => (claim === undefined ? undefined : deps.claims.find(claim, jobId).catch(() => undefined))
  return (await find()) ?? (await waitForJob(deps, context, jobId, seconds)) ?? (await find())
}
