// GET /sources:export: streams a page of a tenant's threads as the requests that store them again.
import { createExportParser, NDJSON, refuseField } from '@sluice/contract'
import type { ApiDeps } from '../api-deps.ts'
import { roomFor, writeHead } from '../request/middleware.ts'
import { requestInvalid } from '../request/problem-error.ts'
import { type Handler, parseQuery, STREAMED } from '../request/request-context.ts'
import { chargeAnswer, type RoomDeps, readWithinLimits } from '../request/shares.ts'
import { FREE_ANSWER_BYTES } from '../settings.ts'
import { chooseTenant } from './delete-source.ts'

/** The most characters of a page. */
const MOST = 16 * 1024 * 1024
/** How long a page is read: with a rest afterwards while threads are stored, else without one. */
const PAGE_MS = { busy: 500, calm: 3_000 }
const BUSY_MS = 1_000
/** Memory of an export: a long line, and the documents of some replies. */
const MEMORY_BYTES = 4 * 1024 * 1024

/** Streams a page. It ends when the quota of the key is used up. */
export function exportSources(
  deps: RoomDeps & Pick<ApiDeps, 'enqueuer' | 'exportThreads' | 'settings' | 'stopping'>,
): Handler {
  const { bodyBudget, enqueuer, exportThreads, settings } = deps
  const parse = createExportParser(settings)
  let [drained, busyAt] = [enqueuer.drained(), Number.NEGATIVE_INFINITY]

  /** Whether threads were stored since an earlier page, of which several may begin at once. */
  function isBusy(): boolean {
    const before = drained
    drained = enqueuer.drained()
    if (drained !== before) busyAt = performance.now()
    return performance.now() - busyAt < BUSY_MS
  }

  return async (context) => {
    const { tenant, ...query } = parseQuery(context, parse)
    chooseTenant(context, tenant)
    const { response, quota, signal: gone } = context
    const begin = () => {
      if (response.headersSent) return
      writeHead(deps, context, { status: 200, headers: { 'content-type': NDJSON } })
    }
    let bytes = 0
    const write = async (text: string, signal: AbortSignal) => {
      begin()
      bytes += Buffer.byteLength(text)
      if (!response.write(text)) await roomFor(response, signal)
    }
    const pace = isBusy() ? 'busy' : 'calm'
    const stream = async (): Promise<typeof STREAMED> => {
      bodyBudget.reserve(context, MEMORY_BYTES)
      const left = quota && enqueuer.quotaLeft(quota)
      const most = left === undefined ? MOST : Math.min(MOST, FREE_ANSWER_BYTES + left * 1024)
      const page = { write, gone, most, ms: PAGE_MS[pace] }
      const threads = await exportThreads(context.tenant, query, page).finally(() =>
        chargeAnswer(context, bytes),
      )
      if (threads === undefined)
        throw requestInvalid(
          refuseField('after', 'must be `next` of an earlier page of this export.'),
        )
      context.log.threads = threads
      begin()
      response.end()
      return STREAMED
    }
    return readWithinLimits(deps, context, stream, pace === 'busy' ? undefined : 0)
  }
}
