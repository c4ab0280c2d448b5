// POST /sources: accepts a thread and, unless the caller prefers otherwise, waits until it is
// stored.
import { acceptedAnswer, type ParsedText, type Thread } from '@sluice/contract'
import { inSpan, SpanKind, traceparentOf } from '@sluice/process'
import {
  AcceptanceUnknownError,
  claimName,
  type Deletion,
  type IngestJob,
  type JobResult,
  type Lane,
  newJobId,
  sourceNameOf,
} from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import { threadAnswer } from '../body/body-parser.ts'
import { checkContentLength, codingOfJson, readBody } from '../body/read-body.ts'
import {
  idempotencyKeyInvalid,
  jobFailed,
  jobUndecided,
  requestInvalid,
} from '../request/problem-error.ts'
import type { Answer, Handler, RequestContext } from '../request/request-context.ts'
import { chargeAnswer } from '../request/shares.ts'

export type EnqueueContext = Pick<
  RequestContext,
  'tenant' | 'requestId' | 'quota' | 'span' | 'startedAt' | 'checkKey'
>
type EnqueueDeps = Pick<ApiDeps, 'enqueuer' | 'metrics'>
type AnswerDeps = Pick<
  ApiDeps,
  | 'replyListener'
  | 'findClaimed'
  | 'retainResult'
  | 'retainLater'
  | 'confirmReplicated'
  | 'settings'
>
export type AcceptDeps = EnqueueDeps & AnswerDeps
type PostSourceDeps = AcceptDeps & Pick<ApiDeps, 'parser' | 'bodyBudget' | 'postTurns'>

export function postSource(deps: PostSourceDeps): Handler {
  return async (context) => {
    const claimed = claimOf(context)
    const posted = await readThread(deps, context)
    const { thread, warnings } = posted
    const { jobId, result } = await acceptJob(deps, context, thread, claimed)
    if (result !== undefined) return storedAnswer(context, posted, jobId, result)
    return unfinishedAnswer(context, jobId, { ...acceptedAnswer(thread), warnings })
  }
}

/**
 * Enqueues a thread or a deletion and, unless its caller prefers otherwise, waits for the result.
 * If there is none, waits until enough replicas of Redis have the job.
 */
export async function acceptJob(
  deps: AcceptDeps,
  context: RequestContext,
  thread: Thread | Deletion,
  claimed: { claim?: string },
): Promise<{ jobId: string; result: JobResult | undefined }> {
  const { prefer, log } = context
  const newId = newJobId(sourceNameOf(thread).externalId)
  log.jobId = newId
  const job = { ...claimed, threads: [thread], retained: !prefer.waits }
  const accepted = prefer.waits
    ? await enqueueAndWait(deps, context, newId, job)
    : { jobId: await enqueueJob(deps, context, newId, 'bulk', job), result: undefined }
  const { jobId, result } = accepted
  if (jobId !== newId) Object.assign(log, { jobId, replayed: true })
  if (result === undefined) await deps.confirmReplicated(jobId, context.startedAt)
  return accepted
}

/** The memory that a quote needs besides its texts. */
const QUOTE_BYTES = 256

/**
 * Above this, while other tenants post, a post waits for its tenant's turn, because it occupies the
 * API, Redis and a worker for as long as dozens of small ones.
 */
const LARGE_BYTES = 256 * 1024
/**
 * Two common cores store about 30 MB of large posts a second. Large posts may use up to 12 MB of
 * that, and each tenant its share of the 12 MB.
 */
const LARGE_BYTES_PER_MS = 12_000

/**
 * Reads and checks in this order: media type, announced size, actual size, JSON, schema. Waits for
 * the tenant's turn before a large body is read, or once a thread turns out to be large.
 * @throws {ProblemError}
 */
async function readThread(deps: PostSourceDeps, context: RequestContext): Promise<Posted> {
  const { request } = context
  async function takeTurn(bytes: number): Promise<void> {
    if (bytes <= LARGE_BYTES || !deps.bodyBudget.isShared(context.tenant)) return
    const restMs = bytes / (LARGE_BYTES_PER_MS * deps.settings.tenantShare)
    await deps.postTurns.take(context, async () => {}, restMs)
  }
  const coding = codingOfJson(request)
  checkContentLength(request, deps.settings.bodyBytes, 'bodyBytes')
  const announced = Number(request.headers['content-length'] ?? 0)
  await takeTurn(announced)
  const text = await readBody(context, deps, coding)
  const textBytes = text.length // Parsing moves a large text to another thread, and empties it.
  const parsed = await deps.parser.thread(text, context.prefer)
  if (!parsed.ok) {
    context.chargedBytes += textBytes
    throw requestInvalid(parsed)
  }
  const { source, quotes } = parsed.thread
  // Until they are answered, many short quotes occupy much more memory than their text.
  const bytes = Math.max(textBytes, quotes.length * QUOTE_BYTES)
  if (bytes > textBytes) deps.bodyBudget.reserve(context, bytes - textBytes)
  await takeTurn(bytes - announced)
  Object.assign(context.log, {
    service: source.service,
    externalId: source.externalId,
    quotes: quotes.length,
  })
  return parsed
}

/**
 * Enqueues a job and waits for its result. The result is undefined if the job is not done in time,
 * or if the request's signal aborts. If an earlier job has claimed the request's Idempotency-Key,
 * returns the id and the result of the earlier job.
 */
async function enqueueAndWait(
  deps: AcceptDeps,
  context: RequestContext,
  newId: string,
  job: Pick<IngestJob, 'threads' | 'retained' | 'claim'>,
): Promise<{ jobId: string; result: JobResult | undefined }> {
  const { replyListener, retainResult, retainLater } = deps
  const { tenant, prefer, signal, response } = context
  const { waitSeconds } = deps.settings
  const waitMs = Math.min(prefer.wait ?? waitSeconds, waitSeconds) * 1000
  // Wait before the job is enqueued, because otherwise the reply may be missed.
  const reply = replyListener.wait(newId, waitMs, signal)
  const retainAgain = (id: string) => void retainLater(id, { tenant, threads: job.threads })
  const enqueuing = enqueueJob(deps, context, newId, 'interactive', {
    ...job,
    replyTo: replyListener.replica,
  })
  try {
    // A reply proves that the job was accepted, even if Redis has not confirmed that yet.
    const early = await Promise.race([reply.result, enqueuing.then(() => undefined)])
    if (early !== undefined) {
      enqueuing.catch(() => deps.metrics.accepted.inc(job.threads.length))
      return { jobId: newId, result: early }
    }
    const jobId = await enqueuing
    if (jobId === newId) reply.accepted()
    else reply.cancel()
    const result = await (jobId === newId
      ? reply.result
      : waitForEarlierJob(deps, context, jobId, job.claim, waitMs))
    if (result !== undefined || response.closed) return { jobId, result }
    // The caller gets the job's id instead, and may ask for the result later.
    return { jobId, result: await retainResult(jobId).catch(() => retainAgain(jobId)) }
  } catch (error) {
    if (error instanceof AcceptanceUnknownError) retainAgain(newId)
    throw error
  }
}

/**
 * A request that has taken longer must still have a valid key. The deletion of a tenant waits for
 * 5 s after it has revoked the keys, and a replica may learn of that 4 s late.
 */
const CHECKED_MS = 500

/**
 * Enqueues threads as one job, and counts them. Returns the job's id. If an earlier job has claimed
 * the request's Idempotency-Key, returns the id of the earlier job.
 */
export async function enqueueJob(
  { enqueuer, metrics }: EnqueueDeps,
  { tenant, requestId, quota, span, startedAt, checkKey }: EnqueueContext,
  jobId: string,
  lane: Lane,
  job: Pick<IngestJob, 'threads' | 'retained' | 'replyTo' | 'import' | 'claim'>,
): Promise<string> {
  if (performance.now() - startedAt > CHECKED_MS) await checkKey?.()
  const enqueue = (trace?: string) => {
    const input = {
      tenant,
      requestId,
      ...(quota && { keyId: quota.keyId }),
      ...(trace !== undefined && { trace }),
      ...job,
    }
    return enqueuer.enqueue(jobId, lane, input, quota)
  }
  const attributes = {
    'sluice.job_id': jobId,
    'sluice.tenant': tenant,
    'sluice.threads': job.threads.length,
  }
  const options = { kind: SpanKind.PRODUCER, attributes }
  const id = await (span === undefined
    ? enqueue()
    : inSpan('enqueue', traceparentOf(span), options, enqueue))
  if (id === jobId) metrics.accepted.inc(job.threads.length)
  return id
}

/** The answer of a job that is done. @throws {ProblemError} if the thread could not be stored. */
function storedAnswer(
  context: RequestContext,
  { thread, warnings }: Posted,
  jobId: string,
  { receipts: [receipt] }: JobResult,
): Answer {
  const { tenant, prefer, log } = context
  if (!receipt || !('outcomes' in receipt)) throw jobFailed(jobId)
  log.outcome = receipt.source.outcome
  const content = JSON.stringify({ ...threadAnswer(tenant, thread, receipt), warnings })
  // The answer has all stored fields of the quotes, including those that the request left out.
  chargeAnswer(context, Buffer.byteLength(content), thread.quotes.length * 1024)
  return {
    status: 200,
    content,
    ...(prefer.strict && { headers: { 'preference-applied': STRICT } }),
  }
}

/** A thread as its caller posted it. */
type Posted = Extract<ParsedText, { ok: true }>

/**
 * Answers 202 with the job's id.
 * @throws {ProblemError} 504 if the caller waits and its request names no `wait`.
 */
export function unfinishedAnswer({ prefer }: RequestContext, jobId: string, body: object): Answer {
  if (prefer.waits && prefer.wait === undefined) throw jobUndecided('job_pending', jobId)
  const applied = [
    ...(prefer.respondAsync ? ['respond-async'] : []),
    ...(prefer.wait === undefined ? [] : [`wait=${prefer.wait}`]),
    ...(prefer.strict ? [STRICT] : []),
  ]
  const headers = { location: `/jobs/${jobId}`, 'preference-applied': applied.join(', ') }
  return { status: 202, body, headers }
}

/** The preference for strict checks, in the form in which an answer confirms it. */
const STRICT = 'handling=strict'

/**
 * An Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07): a string of RFC 8941, section
 * 3.3.3, or the string's content without quotes, because most clients send a bare UUID. If a header
 * was sent twice, it has a comma, and does not match.
 */
export const KEY_FORM = /^(?:"((?:[ !#-[\]-~]|\\["\\]){1,255})"|([!#-+\--:<-[\]-~]{1,255}))$/

/**
 * The claim of a request, if it has an Idempotency-Key: the same for `"abc"` and `abc`. @throws
 * {ProblemError} 400.
 */
export function claimOf({ tenant, request }: Pick<RequestContext, 'tenant' | 'request'>): {
  claim?: string
} {
  const { 'idempotency-key': header } = request.headers
  if (header === undefined) return {}
  const [, quoted, bare] = KEY_FORM.exec(String(header)) ?? []
  const key = quoted?.replaceAll(/\\(.)/g, '$1') ?? bare
  if (key !== undefined) return { claim: claimName(tenant, key) }
  throw idempotencyKeyInvalid(
    `Idempotency-Key must have 1 to 255 visible ASCII characters and be given once: a string in quotation marks (RFC 8941), or without them if it has no space, comma, semicolon, backslash or quotation mark.`,
  )
}

/**
 * Waits for the job of an earlier request with the same key. Looks in the claim as well, which
 * keeps the result longer than Redis knows the job. Resolves with undefined if the job is not done
 * in time, or if `signal` aborts.
 */
async function waitForEarlierJob(
  { findClaimed, replyListener }: Pick<ApiDeps, 'findClaimed' | 'replyListener'>,
  { signal }: Pick<RequestContext, 'signal'>,
  jobId: string,
  claim: string | undefined,
  ms: number,
): Promise<JobResult | undefined> {
  const find = async () =>
    claim === undefined ? undefined : findClaimed(claim, jobId).catch(() => undefined)
  const wait = () => replyListener.wait(jobId, ms, signal, { lookUpAtOnce: true }).result
  try {
    return (await find()) ?? (await wait()) ?? (await find())
  } catch (error) {
    const late = await find()
    if (late === undefined) throw error
    return late
  }
}
