// POST /sources: accepts a thread and, unless the caller prefers otherwise, waits until it is stored.
import { inSpan, SpanKind, traceparentOf } from '@sluice/process'
import { AcceptanceUnknownError, type IngestJob, type JobResult, type Lane, newJobId } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import { threadAnswer } from '../body/job-answer.ts'
import { readBody } from '../body/read-body.ts'
import { chargeAnswer } from '../request/json-answer.ts'
import { jobFailed, requestInvalid } from '../request/problem-error.ts'
import type { Answer, Handler, RequestContext } from '../request/request-context.ts'
import { claimOf, joinJob, type Posted, STRICT, unfinishedAnswer } from './later-answers.ts'

type EnqueueDeps = Pick<ApiDeps, 'enqueuer' | 'metrics'>
type AnswerDeps = Pick<ApiDeps, 'replyListener' | 'findClaimed' | 'retainResult' | 'retainLater' | 'confirmReplicated'>
type PostSourceDeps = EnqueueDeps & AnswerDeps & Pick<ApiDeps, 'parser' | 'limits' | 'bodyMemory'>

export function postSource(deps: PostSourceDeps): Handler {
  return async (context) => {
    const { prefer, log, tenant, request } = context
    const { 'idempotency-key': key } = request.headers
    const claimed = key === undefined ? {} : claimOf(tenant, key)
    const posted = await readThread(deps, context)
    const newId = newJobId(posted.thread.source.externalId)
    log.jobId = newId
    const job = { ...claimed, threads: [posted.thread], retained: !prefer.waits }
    const { jobId, result } = prefer.waits
      ? await enqueueAndWait(deps, context, newId, job)
      : { jobId: await enqueueJob(deps, context, newId, 'bulk', job), result: undefined }
    if (jobId !== newId) Object.assign(log, { jobId, replayed: true })
    if (result !== undefined) return storedAnswer(context, posted, jobId, result)
    await deps.confirmReplicated(jobId, context.startedAt)
    return unfinishedAnswer(context, posted, jobId)
  }
}

/** The memory of a quote beside its texts. */
const QUOTE_BYTES = 256

/** Checks in this order: media type, announced size, actual size, JSON, schema. @throws {ProblemError} */
async function readThread(deps: PostSourceDeps, context: RequestContext): Promise<Posted> {
  const text = await readBody(context, deps)
  const textBytes = text.length // A large text is moved to another thread, and is empty then.
  const parsed = await deps.parser.thread(text, context.prefer)
  if (!parsed.ok) {
    context.chargedBytes += textBytes
    throw requestInvalid(parsed)
  }
  const { source, quotes } = parsed.thread
  // Many short quotes occupy much more memory than their text, until they are answered.
  if (quotes.length * QUOTE_BYTES > textBytes) deps.bodyMemory.reserve(context, quotes.length * QUOTE_BYTES - textBytes)
  Object.assign(context.log, { service: source.service, externalId: source.externalId, quotes: quotes.length })
  return parsed
}

/**
 * Enqueues a job and waits for its result: undefined if the job is not done in time, or if the request's signal aborts.
 * If an earlier job has claimed the request's Idempotency-Key, id and result are those of the earlier job.
 */
async function enqueueAndWait(
  deps: PostSourceDeps,
  context: RequestContext,
  newId: string,
  job: Pick<IngestJob, 'threads' | 'retained' | 'claim'>,
): Promise<{ jobId: string; result: JobResult | undefined }> {
  const { waitSeconds } = deps.limits
  const ms = Math.min(context.prefer.wait ?? waitSeconds, waitSeconds) * 1000
  const { replica: replyTo, wait } = deps.replyListener
  const { result: reply, cancel, accepted } = wait(newId, ms, context.signal)
  const enqueuing = enqueueJob(deps, context, newId, 'interactive', { ...job, replyTo })
  try {
    // A result proves that the job was accepted, even if Redis did not confirm it.
    const first = await Promise.race([reply, enqueuing])
    if (typeof first === 'object') return { jobId: newId, result: first }
    const jobId = first ?? (await enqueuing)
    if (jobId === newId) accepted()
    else cancel()
    const result = await (jobId === newId ? reply : joinJob(deps, context, jobId, job.claim, ms))
    return { jobId, result: result ?? (context.response.closed ? undefined : await deps.retainResult(jobId)) }
  } catch (error) {
    const { tenant } = context
    if (error instanceof AcceptanceUnknownError) deps.retainLater(newId, { tenant, threads: job.threads })
    throw error
  }
}

/**
 * Enqueues threads as one job, and counts them. Returns the job's id, or that of the earlier job that has claimed the
 * request's Idempotency-Key. To wait for the job, listen for `jobId` before this call: else the reply may be missed.
 */
export async function enqueueJob(
  { enqueuer, metrics }: EnqueueDeps,
  { tenant, requestId, quota, span: request }: Pick<RequestContext, 'tenant' | 'requestId' | 'quota' | 'span'>,
  jobId: string,
  lane: Lane,
  job: Pick<IngestJob, 'threads' | 'retained' | 'replyTo' | 'import' | 'claim'>,
): Promise<string> {
  const enqueue = (trace?: string) => {
    const by = { tenant, requestId, ...(quota && { keyId: quota.keyId }) }
    const traced = { ...by, ...(trace !== undefined && { trace }), ...job }
    return enqueuer.enqueue(jobId, lane, traced, quota)
  }
  const attributes = { 'sluice.job_id': jobId, 'sluice.tenant': tenant, 'sluice.threads': job.threads.length }
  const options = { kind: SpanKind.PRODUCER, attributes }
  const id = await (request === undefined ? enqueue() : inSpan('enqueue', traceparentOf(request), options, enqueue))
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
  if (!receipt) throw jobFailed(jobId)
  log.outcome = receipt.source.outcome
  const content = JSON.stringify({ ...threadAnswer(tenant, thread, receipt), warnings })
  // The answer has all stored fields of the quotes, also those that the request left out.
  chargeAnswer(context, Buffer.byteLength(content), thread.quotes.length * 1024)
  return { status: 200, content, ...(prefer.strict && { headers: { 'preference-applied': STRICT } }) }
}
