import { createProblem } from '@sluice/contract'
import { type Call, STREAMED } from '../call.ts'
import type { ProblemError } from '../problem-error.ts'
import { drain, endAfter } from '../send-answer.ts'
import { refuseItem } from './batch-item.ts'
import { createSummary, type ItemResult, refusedItem } from './batch-results.ts'
import { failureOf } from './failure-of.ts'
import type { Run } from './run-batch.ts'
import { createSpillingAnswer, type SpillingAnswer } from './spilling-answer.ts'
import { type GroupParts, waitForGroups } from './wait-for-groups.ts'

/** The media type of a JSON text a line. */
export const NDJSON = 'application/x-ndjson'

export type StreamParts = GroupParts & {
  isStopping: () => boolean
  /** How much of an answer that is not read may lie in a file, in bytes. */
  spillBytes: number
}

/** How long the rest of a body is taken in when the process must end, in ms: connections are cut half a second after. */
const LAST_DRAIN_MS = 200

/** A line for each item as soon as it and all before it are known, and a summary as the last. */
export async function streamResults(parts: StreamParts, call: Call, run: Run): Promise<typeof STREAMED> {
  const { response, requestId } = call
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
    await answer.write(results.map(({ text }) => `${text}\n`).join(''))
  }
  const groups = waitForGroups(parts, call, hand)
  try {
    const failure = await failureOf(run(groups.submit, groups.isIdle))
    // Who sends everything first reads nothing of what is told until the rest was taken from it.
    const drainRest = () => drain(call.request, parts.stopping.aborted ? LAST_DRAIN_MS : undefined)
    const draining = response.headersSent ? drainRest() : undefined
    await groups.finish()
    if (failure !== undefined && !response.headersSent) throw failure
    // What was taken is taken: the rest is one last item that could not be read.
    if (failure !== undefined) await hand([refusedItem(refuseItem(summary.received, asProblem(failure, requestId)))])
    begin()
    call.log.summary = summary
    await answer.write(`${JSON.stringify({ summary })}\n`)
    await endStream(call, answer, draining ?? drainRest())
  } finally {
    await answer.end()
  }
  return STREAMED
}

/** How long a reader may still take whose rest of a body was too much to take in, in ms. */
const LAST_READ_MS = 30_000

async function endStream(call: Call, answer: SpillingAnswer, draining: Promise<boolean>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  void draining.then((whole) => {
    if (!whole) timer = setTimeout(() => call.response.destroy(), LAST_READ_MS)
  })
  await answer.end()
  await endAfter(call, draining)
  clearTimeout(timer)
}

function asProblem({ code, members }: ProblemError, requestId: string) {
  return createProblem(code, { ...members, instance: '/sources:batch', requestId })
}
