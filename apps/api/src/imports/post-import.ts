// POST /sources:batch: accepts many threads, each for itself, and answers with the result of each.
import { NDJSON, parsePrefer } from '@sluice/contract'
import type { ApiDeps } from '../api-deps.ts'
import { allowBody, drainBody, endAfter } from '../body/arriving-body.ts'
import { type Coding, INFLATER_MEMORY } from '../body/body-chunks.ts'
import { checkContentLength, checkContentType, readBody } from '../body/read-body.ts'
import { quotaHeaders } from '../middleware.ts'
import { problemBody, requestInvalid } from '../request/problem-error.ts'
import { type Answer, type Handler, type RequestContext, STREAMED } from '../request/request-context.ts'
import { IMPORT_LIMITS } from '../settings.ts'
import { enqueueImport } from './async-import.ts'
import { bodyLines } from './body-lines.ts'
import { openGroupPipeline, type PipelineDeps } from './group-pipeline.ts'
import {
  createSummary,
  type ItemParser,
  type ItemResult,
  problemOf,
  type RunImport,
  refusedResult,
  refuseItem,
  submitArray,
  submitLines,
} from './import-items.ts'
import { createSpillingAnswer, type SpillingAnswer } from './spilling-answer.ts'

type PostImportDeps = Pick<
  ApiDeps,
  'parser' | 'limits' | 'enqueuer' | 'replyListener' | 'imports' | 'metrics' | 'stopping' | 'bodyMemory' | 'spillSpace'
>

export function postImport(deps: PostImportDeps): Handler {
  return async (context) => {
    const { request, requestId } = context
    const { mediaType, coding } = checkContentType(request, [NDJSON, 'application/json'])
    const prefer = parsePrefer(request.headers.prefer)
    const onRefused = (bytes: number) => {
      context.refusedBytes += bytes
    }
    const parser = { requestId, parser: deps.parser, prefer, lineBytes: deps.limits.bodyBytes, onRefused }
    const isLines = mediaType === NDJSON
    const run = isLines ? runLines(deps, context, coding, parser) : await runArray(deps, context, coding, parser)
    if (prefer.respondAsync) return enqueueImport(deps, context, run)
    return isLines ? streamResults(deps, context, run) : collectResults(deps, context, run)
  }
}

/** The texts, threads and results of one import that are in memory at once take at most this many bytes, long lines aside. */
const IMPORT_MEMORY = 4 * 1024 * 1024
const CHUNK_MEMORY = 128 * 1024

/** @throws {ProblemError} 413; 503 without memory. Reads the body only once it runs. */
function runLines(
  { limits: { importBytes, bodyBytes }, bodyMemory }: PostImportDeps,
  context: RequestContext,
  coding: Coding,
  parser: ItemParser,
): RunImport {
  const announced = checkContentLength(context.request, importBytes, 'importBytes') ?? IMPORT_MEMORY
  const inMemory = coding === 'identity' ? Math.min(announced, IMPORT_MEMORY) : IMPORT_MEMORY
  const base = CHUNK_MEMORY + inMemory + INFLATER_MEMORY[coding].fixed
  const reservation = bodyMemory.reserve(context, base)
  const ensure = (lineBytes: number) => reservation.raise(base + lineBytes)
  return (submit, isIdle) => {
    allowBody(context)
    const lines = bodyLines(context.request, coding, { importBytes, bodyBytes, stop: context.signal, ensure })
    return submitLines(lines, parser, submit, isIdle)
  }
}

const MAX_ITEMS = IMPORT_LIMITS.importItems.default

/** @throws {ProblemError} 413, 503, 400. */
async function runArray(
  deps: PostImportDeps,
  context: RequestContext,
  coding: Coding,
  { prefer, ...parser }: ItemParser,
): Promise<RunImport> {
  const bytes = deps.limits.bodyBytes
  const announced = checkContentLength(context.request, bytes, 'bodyBytes')
  const text = await readBody(context, { coding, announced, bytes }, deps)
  const textBytes = text.length // A large text is handed to another thread, and is empty then.
  const parsed = await deps.parser.array(text, { strict: prefer.strict, maxItems: MAX_ITEMS })
  if (!parsed.ok) {
    parser.onRefused(textBytes)
    throw requestInvalid(parsed)
  }
  const refused = parsed.elements.filter(({ ok }) => !ok)
  if (refused.length > 0) parser.onRefused((textBytes * refused.length) / parsed.elements.length)
  return (submit) => submitArray(parsed.elements, parser, submit)
}

/** Answers an array with one JSON object. */
async function collectResults(deps: PipelineDeps, context: RequestContext, run: RunImport): Promise<Answer> {
  const { add, summary } = createSummary()
  const results: string[] = []
  const pipeline = openGroupPipeline(deps, context, async (items) => {
    add(items)
    results.push(...items.map(({ json }) => json))
  })
  await run(pipeline.submit, pipeline.isIdle)
  await pipeline.finish()
  context.log.summary = summary
  return { status: 200, json: `{"results":[${results.join(',')}],"summary":${JSON.stringify(summary)}}` }
}

type StreamDeps = PipelineDeps & Pick<ApiDeps, 'stopping' | 'spillSpace'>

/** How long the rest of a body is drained when the process must end, in ms. Connections are cut half a second later. */
const LAST_DRAIN_MS = 200

/**
 * Answers with a line for each item as soon as it and all items before it are known, and a summary as the last line.
 *
 * @throws {ProblemError} if the import ended early before its answer began.
 */
async function streamResults(deps: StreamDeps, context: RequestContext, run: RunImport): Promise<typeof STREAMED> {
  const { request, response, requestId, path } = context
  const answer = createSpillingAnswer(context, deps.spillSpace)
  const { add, summary } = createSummary()
  const begin = () => {
    if (!response.headersSent) writeHead(deps, context)
  }
  const write = async (results: ItemResult[]) => {
    begin()
    add(results)
    await answer.write(results.map(({ json }) => `${json}\n`).join(''))
  }
  const pipeline = openGroupPipeline(deps, context, write)
  try {
    const problem = await problemOf(run(pipeline.submit, pipeline.isIdle))
    // A caller that sends everything first reads nothing before the rest of its body was drained.
    const drain = () => drainBody(request, context.signal.aborted ? LAST_DRAIN_MS : undefined)
    const draining = response.headersSent ? drain() : undefined
    await pipeline.finish()
    if (problem !== undefined && !response.headersSent) throw problem
    // The items before were accepted. The rest is one last item that could not be read.
    if (problem !== undefined)
      await write([refusedResult(refuseItem({ index: summary.received }, problemBody(problem, path, requestId)))])
    begin()
    context.log.summary = summary
    await answer.write(`${JSON.stringify({ summary })}\n`)
    await endStream(context, answer, draining ?? drain())
  } finally {
    await answer.end()
  }
  return STREAMED
}

function writeHead({ enqueuer, stopping }: StreamDeps, context: RequestContext): void {
  context.response.writeHead(200, {
    'content-type': NDJSON,
    'x-request-id': context.requestId,
    ...quotaHeaders(enqueuer, context, { status: 200 }),
    ...(stopping.aborted && { connection: 'close' }),
  })
}

/** How long a reader may still take if the rest of its body was too large to drain, in ms. */
const LAST_READ_MS = 30_000

async function endStream(
  { request, response }: RequestContext,
  answer: SpillingAnswer,
  draining: Promise<boolean>,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  void draining.then((complete) => {
    if (!complete) timer = setTimeout(() => response.destroy(), LAST_READ_MS)
  })
  await answer.end()
  await endAfter(draining, request, response)
  clearTimeout(timer)
}
