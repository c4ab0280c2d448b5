// Answers an import with a line for each item as soon as it and all items before it are known, and a summary as the last line.
import { NDJSON } from '@sluice/contract'
import type { ApiDeps } from '../api-deps.ts'
import { drainBody, endAfter } from '../arriving-body.ts'
import { quotaHeaders } from '../middleware.ts'
import { problemBody } from '../problems.ts'
import { type RequestContext, STREAMED } from '../request-context.ts'
import { problemOf, type RunImport } from './group-items.ts'
import { openGroupPipeline, type PipelineDeps } from './group-pipeline.ts'
import { createSummary, type ItemResult, refusedResult, refuseItem } from './import-items.ts'
import { createSpillingAnswer, type SpillingAnswer } from './spilling-answer.ts'

type StreamDeps = PipelineDeps & Pick<ApiDeps, 'stopping' | 'spillSpace'>

/** How long the rest of a body is drained when the process must end, in ms. Connections are cut half a second later. */
const LAST_DRAIN_MS = 200

/** @throws {ProblemError} if the import ended early before its answer began. */
export async function streamResults(
  deps: StreamDeps,
  context: RequestContext,
  run: RunImport,
): Promise<typeof STREAMED> {
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
    const drain = () => drainBody(request, deps.graceOver.aborted ? LAST_DRAIN_MS : undefined)
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
