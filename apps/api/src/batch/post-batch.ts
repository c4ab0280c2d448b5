import { createProblem, type Preferences, parsePrefer } from '@sluice/contract'
import { type Batches, newJobId } from '@sluice/queue'
import { type Coding, judgeBodyHead } from '../body-head.ts'
import { type Answer, type Call, type Handle, STREAMED } from '../call.ts'
import { queueUnavailable } from '../enqueue.ts'
import { parseJson } from '../parse-json.ts'
import type { PostSourceParts } from '../post-source.ts'
import { ProblemError } from '../problem-error.ts'
import { CallerGoneError, readBody } from '../read-body.ts'
import { createSummary, type ItemResult, refusedItem } from './batch-results.ts'
import { bodyLines, type Lines } from './body-lines.ts'
import { enqueueGroups } from './enqueue-groups.ts'
import { describeBatch } from './get-batch.ts'
import { type BatchInput, runArray, runLines, type Submit } from './run-batch.ts'
import { createSpillingAnswer } from './spilling-answer.ts'
import { waitForGroups } from './wait-for-groups.ts'

export interface PostBatchParts extends PostSourceParts {
  batches: Batches
  /** How large a batch may be, inflated, in bytes. */
  batchBytes: number
  /** How much of an answer that is not read may lie in a file, in bytes. */
  spillBytes: number
}

const NDJSON = 'application/x-ndjson'
/** How many threads an array may have. */
export const ARRAY_ITEMS = 1_000

/** POST /sources:batch: takes many threads in, each for itself, and tells of each how it went. */
export function postBatch(parts: PostBatchParts): Handle {
  return async (call) => {
    parts.admit()
    const { mediaType, coding } = judgeBodyHead(call.request, [NDJSON, 'application/json'], parts.batchBytes)
    const prefer = parsePrefer(call.request.headers.prefer)
    const run = mediaType === NDJSON ? linesOf(parts, call, coding, prefer) : await arrayOf(parts, call, coding, prefer)
    if (prefer.respondAsync) return enqueueBatch(parts, call, run)
    return mediaType === NDJSON ? streamResults(parts, call, run) : collectResults(parts, call, run)
  }
}

/** Takes a batch's items in, group by group. */
type Run = (submit: Submit, isIdle: () => boolean) => Promise<void>

function linesOf(parts: PostBatchParts, call: Call, coding: Coding, prefer: Preferences): Run {
  const lines = bodyLines(call.request, coding, { body: parts.batchBytes, line: parts.bodyBytes })
  return (submit, isIdle) => {
    if (call.request.headers.expect?.toLowerCase() === '100-continue') call.response.writeContinue()
    return runLines(untilStopped(lines, parts.stopping), inputOf(parts, call, prefer, isIdle), submit)
  }
}

async function arrayOf(parts: PostBatchParts, call: Call, coding: Coding, prefer: Preferences): Promise<Run> {
  const body = parseJson(await readBody(call, coding, parts.bodyBytes, parts.stopping))
  if (!Array.isArray(body)) throw invalid('type', 'The body must be a JSON array.')
  if (body.length > ARRAY_ITEMS)
    throw invalid('too_many', `An array may have at most ${ARRAY_ITEMS} items; send ${NDJSON} for more.`)
  return (submit, isIdle) => runArray(body, inputOf(parts, call, prefer, isIdle), submit)
}

function invalid(code: 'type' | 'too_many', message: string): ProblemError {
  return new ProblemError('request_invalid', { detail: message, errors: [{ pointer: '', code, message }], total: 1 })
}

function inputOf(
  { parseThread, bodyBytes }: PostBatchParts,
  { requestId }: Call,
  prefer: Preferences,
  isIdle: () => boolean,
): BatchInput {
  return { requestId, parseThread, prefer, lineBytes: bodyBytes, isIdle }
}

async function* untilStopped(lines: AsyncIterable<Lines>, stopping: AbortSignal): AsyncGenerator<Lines> {
  const stopped = Promise.withResolvers<never>()
  const stop = () => stopped.reject(new ProblemError('stopping', { detail: 'The service stops; send the rest again.' }))
  stopped.promise.catch(() => {})
  if (stopping.aborted) stop()
  stopping.addEventListener('abort', stop)
  const iterator = lines[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { done, value } = await Promise.race([iterator.next(), stopped.promise])
      if (done) return
      yield value
    }
  } finally {
    stopping.removeEventListener('abort', stop)
  }
}

/** A line for each item as soon as it and all before it are known, and a summary as the last. */
async function streamResults(parts: PostBatchParts, call: Call, run: Run): Promise<typeof STREAMED> {
  const { response, requestId, request } = call
  const answer = createSpillingAnswer(response, parts.spillBytes)
  const { add, summary } = createSummary()
  const begin = () => {
    if (response.headersSent) return
    response.writeHead(200, {
      'content-type': NDJSON,
      'x-request-id': requestId,
      ...(parts.isStopping() && { connection: 'close' }),
    })
  }
  const hand = async (results: ItemResult[]) => {
    begin()
    for (const result of results) add(result)
    await answer.write(results.map((result) => `${JSON.stringify(result)}\n`).join(''))
  }
  const groups = waitForGroups(parts, call, hand)
  try {
    const failure = await failureOf(run(groups.submit, groups.isIdle))
    await groups.finish()
    if (failure !== undefined && !response.headersSent) throw failure
    // What was taken is taken: the rest is one last item that could not be read.
    if (failure !== undefined) await hand([refusedItem(summary.received, asProblem(failure, requestId))])
    begin()
    call.log.summary = summary
    await answer.write(`${JSON.stringify({ summary })}\n`)
  } finally {
    await answer.end()
  }
  if (failureLeftBody(request)) request.resume()
  response.end()
  return STREAMED
}

function failureLeftBody({ readableEnded, destroyed }: Call['request']): boolean {
  return !readableEnded && !destroyed
}

async function failureOf(running: Promise<void>): Promise<ProblemError | undefined> {
  try {
    await running
    return undefined
  } catch (error) {
    if (error instanceof ProblemError) return error
    if (error instanceof Error && 'code' in error && GONE_CODES.has(String(error.code)))
      throw new CallerGoneError('the caller hung up')
    throw error
  }
}

const GONE_CODES = new Set(['ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE'])

function asProblem({ code, members }: ProblemError, requestId: string) {
  return createProblem(code, { ...members, instance: '/sources:batch', requestId })
}

/** The same as one JSON object. */
async function collectResults(parts: PostBatchParts, call: Call, run: Run): Promise<Answer> {
  const { add, summary } = createSummary()
  const results: ItemResult[] = []
  const groups = waitForGroups(parts, call, async (some) => {
    for (const result of some) add(result)
    results.push(...some)
  })
  await run(groups.submit, groups.isIdle)
  await groups.finish()
  call.log.summary = summary
  return { status: 200, body: { results, summary } }
}

/** Answers as soon as all of the batch is in Redis. */
async function enqueueBatch(parts: PostBatchParts, call: Call, run: Run): Promise<Answer> {
  const id = newJobId()
  call.log.batchId = id
  const { enqueued, submit } = enqueueGroups(parts, call, id)
  const failure = await failureOf(run(submit, () => false))
  await asked(parts.batches.open(id, { tenant: call.tenant, ...enqueued }))
  if (failure !== undefined) throw failure
  const found = await asked(parts.batches.find(id))
  if (found === undefined) throw queueUnavailable()
  const headers = { location: `/batches/${id}`, 'preference-applied': 'respond-async' }
  return { status: 202, body: describeBatch(id, found, call.requestId), headers }
}

async function asked<Result>(asking: Promise<Result>): Promise<Result> {
  try {
    return await asking
  } catch {
    throw queueUnavailable()
  }
}
