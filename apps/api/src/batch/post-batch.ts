import { type Preferences, parsePrefer } from '@sluice/contract'
import { type Imports, newJobId } from '@sluice/queue'
import { BATCH_LIMITS } from '../api-settings.ts'
import { type Coding, judgeBodyKind, judgeBodyLength } from '../body-head.ts'
import { type Answer, type Call, type Handle, STREAMED } from '../call.ts'
import { queueUnavailable } from '../enqueue.ts'
import { parseJson } from '../parse-json.ts'
import type { PostSourceParts } from '../post-source.ts'
import { ProblemError } from '../problem-error.ts'
import { askForBody, CallerGoneError, readBody } from '../read-body.ts'
import { sendJson } from '../send-answer.ts'
import { createSummary } from './batch-results.ts'
import { bodyLines } from './body-lines.ts'
import { enqueueGroups } from './enqueue-groups.ts'
import { failureOf } from './failure-of.ts'
import { describeBatch } from './get-batch.ts'
import { inflatedChunks } from './inflated-chunks.ts'
import { type BatchInput, type Run, runArray, runLines } from './run-batch.ts'
import { NDJSON, streamResults } from './stream-results.ts'
import { waitForGroups } from './wait-for-groups.ts'

export interface PostBatchParts extends PostSourceParts {
  batches: Imports
  /** How large a batch may be, inflated, in bytes. */
  batchBytes: number
  /** How much of an answer that is not read may lie in a file, in bytes. */
  spillBytes: number
}

const ARRAY_ITEMS = BATCH_LIMITS.batchItems.default

/** POST /sources:batch: takes many threads in, each for itself, and tells of each how it went. */
export function postBatch(parts: PostBatchParts): Handle {
  return async (call) => {
    parts.admit()
    const { mediaType, coding } = judgeBodyKind(call.request, [NDJSON, 'application/json'])
    const prefer = parsePrefer(call.request.headers.prefer)
    const run = mediaType === NDJSON ? linesOf(parts, call, coding, prefer) : await arrayOf(parts, call, coding, prefer)
    if (prefer.respondAsync) return enqueueBatch(parts, call, run)
    return mediaType === NDJSON ? streamResults(parts, call, run) : collectResults(parts, call, run)
  }
}

function linesOf(parts: PostBatchParts, call: Call, coding: Coding, prefer: Preferences): Run {
  judgeBodyLength(call.request, parts.batchBytes, 'batchBytes')
  return (submit, isIdle) => {
    askForBody(call)
    const chunks = inflatedChunks(call.request, coding, parts.batchBytes, parts.stopping)
    return runLines(bodyLines(chunks, parts.bodyBytes), inputOf(parts, call, prefer, isIdle), submit)
  }
}

async function arrayOf(parts: PostBatchParts, call: Call, coding: Coding, prefer: Preferences): Promise<Run> {
  judgeBodyLength(call.request, parts.bodyBytes)
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

/** The results of an array, as one JSON object. */
async function collectResults(parts: PostBatchParts, call: Call, run: Run): Promise<typeof STREAMED> {
  const { add, summary } = createSummary()
  const texts: string[] = []
  const groups = waitForGroups(parts, call, async (results) => {
    for (const result of results) add(result)
    texts.push(...results.map(({ text }) => text))
  })
  await run(groups.submit, groups.isIdle)
  await groups.finish()
  call.log.summary = summary
  const text = `{"results":[${texts.join(',')}],"summary":${JSON.stringify(summary)}}`
  if (call.response.closed) throw new CallerGoneError('the caller hung up')
  sendJson(call, { status: 200, text, headers: {} }, parts.isStopping())
  return STREAMED
}

/** Answers as soon as all of the batch is in Redis. Where its body fails half-way what was taken can be looked up all the same. */
async function enqueueBatch(parts: PostBatchParts, call: Call, run: Run): Promise<Answer> {
  const id = newJobId()
  call.log.batchId = id
  const location = `/batches/${id}`
  const { enqueued, submit } = enqueueGroups(parts, call, id)
  const open = () => asked(parts.batches.open(id, { tenant: call.tenant, ...enqueued }))
  try {
    const failure = await failureOf(run(submit, () => false))
    if (failure !== undefined) throw enqueued.received === 0 ? failure : located(failure, location)
  } catch (error) {
    // What ended the batch is what its caller has to hear of; where the queue is away, too, nothing can be looked up.
    if (enqueued.received > 0) await open().catch(() => {})
    throw error
  }
  await open()
  const found = await asked(parts.batches.find(id))
  if (found === undefined) throw queueUnavailable()
  const headers = { location, 'preference-applied': 'respond-async' }
  return { status: 202, body: describeBatch(id, found, call.requestId), headers }
}

function located({ code, members, headers }: ProblemError, location: string): ProblemError {
  return new ProblemError(code, members, { ...headers, location })
}

async function asked<Result>(asking: Promise<Result>): Promise<Result> {
  try {
    return await asking
  } catch {
    throw queueUnavailable()
  }
}
