// GET /sources:export: streams a page of a tenant's threads as the requests that store them again.
import { setTimeout as delay } from 'node:timers/promises'
import { createExportParser, NDJSON, refuseField } from '@sluice/contract'
import type { ApiDeps } from '../api-deps.ts'
import { roomFor, writeHead } from '../request/middleware.ts'
import { requestInvalid } from '../request/problem-error.ts'
import { type Handler, parseQuery, STREAMED } from '../request/request-context.ts'
import { chargeAnswer, REST_TIMES, type RoomDeps, readWithinLimits } from '../request/shares.ts'
import { FREE_ANSWER_BYTES } from '../settings.ts'
import { chooseTenant } from './delete-source.ts'

/** The most characters of a page. */
const MOST = 16 * 1024 * 1024
/** Memory of an export: a long line, and the documents of some replies. */
const MEMORY_BYTES = 4 * 1024 * 1024

type ExportDeps = RoomDeps & Pick<ApiDeps, 'enqueuer' | 'exportThreads' | 'settings' | 'stopping'>

/**
 * Streams a page. It ends when the quota of the key is used up. The exports of a tenant wait for each
 * other.
 */
export function exportSources(deps: ExportDeps): Handler {
  const parse = createExportParser(deps.settings)
  const rest = createRests(deps)
  const lasts = new Map<string, Promise<unknown>>()
  return async (context) => {
    const { tenant: named, ...query } = parseQuery(context, parse)
    chooseTenant(context, named)
    const { tenant, response, quota, signal: gone } = context
    const begin = () => {
      if (response.headersSent) return
      writeHead(deps, context, { status: 200, headers: { 'content-type': NDJSON } })
    }
    let [bytes, began] = [0, 0]
    const write = async (text: string, signal: AbortSignal) => {
      const readMs = performance.now() - began
      begin()
      bytes += Buffer.byteLength(text)
      if (!response.write(text)) await roomFor(response, signal)
      await rest(tenant, readMs, signal)
      began = performance.now()
    }
    const stream = async (): Promise<typeof STREAMED> => {
      deps.bodyBudget.reserve(context, MEMORY_BYTES)
      await rest(tenant, 0, gone)
      began = performance.now()
      const left = quota && deps.enqueuer.quotaLeft(quota)
      const most = left === undefined ? MOST : Math.min(MOST, FREE_ANSWER_BYTES + left * 1024)
      try {
        const threads = await deps.exportThreads(tenant, query, { write, gone, most })
        if (threads === undefined)
          throw requestInvalid(
            refuseField('after', 'must be `next` of an earlier page of this export.'),
          )
        context.log.threads = threads
      } finally {
        chargeAnswer(context, bytes)
      }
      begin()
      response.end()
      return STREAMED
    }
    const before = lasts.get(tenant)
    const page = (async () => {
      await before?.catch(() => {})
      gone.throwIfAborted()
      // It rests while it reads, and not afterwards.
      return readWithinLimits(deps, context, stream, 0)
    })()
    lasts.set(tenant, page)
    return page.finally(() => {
      if (lasts.get(tenant) === page) lasts.delete(tenant)
    })
  }
}

/** Threads that are stored make exports rest for this time. */
const BUSY_MS = 1_000
/** A page must end within the time limit of a read. */
const LONGEST_REST_MS = 3_000

/**
 * Makes the rests of exports. While others have threads stored, a tenant's exports rest together,
 * REST_TIMES times as long as they read; else they don't.
 */
function createRests({ enqueuer }: Pick<ExportDeps, 'enqueuer'>) {
  const restUntil = new Map<string, number>()
  let [drained, busyAt] = [enqueuer.drained(), Number.NEGATIVE_INFINITY]
  return async (tenant: string, readMs: number, signal: AbortSignal) => {
    const now = performance.now()
    if (enqueuer.drained() !== drained) busyAt = now
    drained = enqueuer.drained()
    if (now - busyAt > BUSY_MS) return void restUntil.delete(tenant)
    const until = Math.max(now, restUntil.get(tenant) ?? 0) + REST_TIMES * readMs
    restUntil.set(tenant, Math.min(until, now + LONGEST_REST_MS))
    await delay(Math.min(until - now, LONGEST_REST_MS), undefined, { signal })
  }
}
