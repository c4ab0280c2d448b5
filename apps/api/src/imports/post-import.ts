// POST /sources:batch: accepts many threads, each for itself, and answers with the result of each.
import { parsePrefer } from '@sluice/contract'
import type { ApiDeps } from '../api-deps.ts'
import { IMPORT_LIMITS } from '../api-settings.ts'
import type { Coding } from '../content-coding.ts'
import { bodyInvalid } from '../problems.ts'
import { allowBody, checkContentLength, checkContentType, parseJson, readBody } from '../read-body.ts'
import type { Answer, Handler, RequestContext } from '../request-context.ts'
import { enqueueImport } from './async-import.ts'
import { bodyLines } from './body-lines.ts'
import { type ItemParser, type RunImport, submitArray, submitLines } from './group-items.ts'
import { openGroupPipeline, type PipelineDeps } from './group-pipeline.ts'
import { createSummary } from './import-items.ts'
import { NDJSON, streamResults } from './stream-results.ts'

type PostImportDeps = Pick<
  ApiDeps,
  'parseThread' | 'limits' | 'enqueuer' | 'replyListener' | 'imports' | 'metrics' | 'stopping' | 'graceOver'
>

export function postImport(deps: PostImportDeps): Handler {
  return async (context) => {
    const { request, requestId } = context
    const { mediaType, coding } = checkContentType(request, [NDJSON, 'application/json'])
    const prefer = parsePrefer(request.headers.prefer)
    const parser = { requestId, parseThread: deps.parseThread, prefer, lineBytes: deps.limits.bodyBytes }
    const isLines = mediaType === NDJSON
    const run = isLines ? runLines(deps, context, coding, parser) : await runArray(deps, context, coding, parser)
    if (prefer.respondAsync) return enqueueImport(deps, context, run)
    return isLines ? streamResults(deps, context, run) : collectResults(deps, context, run)
  }
}

/** @throws {ProblemError} 413. Reads the body only once it runs. */
function runLines(
  { limits, graceOver }: PostImportDeps,
  context: RequestContext,
  coding: Coding,
  parser: ItemParser,
): RunImport {
  checkContentLength(context.request, limits.importBytes, 'importBytes')
  return (submit, isIdle) => {
    allowBody(context)
    return submitLines(bodyLines(context.request, coding, limits, graceOver), parser, submit, isIdle)
  }
}

const MAX_ITEMS = IMPORT_LIMITS.importItems.default

/** @throws {ProblemError} 413, 400. */
async function runArray(
  { limits: { bodyBytes }, graceOver }: PostImportDeps,
  context: RequestContext,
  coding: Coding,
  parser: ItemParser,
): Promise<RunImport> {
  checkContentLength(context.request, bodyBytes, 'bodyBytes')
  const body = parseJson(await readBody(context, coding, bodyBytes, graceOver))
  if (!Array.isArray(body)) throw bodyInvalid('type', 'The body must be a JSON array.')
  if (body.length > MAX_ITEMS)
    throw bodyInvalid('too_many', `An array may have at most ${MAX_ITEMS} items; send ${NDJSON} for more.`)
  return (submit) => submitArray(body, parser, submit)
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
