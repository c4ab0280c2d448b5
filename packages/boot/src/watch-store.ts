// Keeps a process from documents of another layout, and from a queue that feeds another store
// (docs/adr/0023-identity-and-marks.md).
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Life, Logger } from '@sluice/process'
import type { Redis } from '@sluice/process/redis'
import {
  checkFedStore,
  noteOtherStore,
  OtherStoreError,
  type QueueKeys,
  readFedStore,
} from '@sluice/queue'
import { checkLayout, noteStore, readStore, StoreLayoutError } from '@sluice/store/connect'
import { readMarks } from './marks.ts'

/** A start waits no longer than this for the first check. */
const FIRST_MS = 1_000
const CHECK_EVERY_MS = 5_000
/** Until the first success, a worker takes no job. */
const CHECK_AGAIN_MS = 500

interface WatchDeps {
  kind: 'api' | 'worker' | 'dashboard'
  db: Parameters<typeof readStore>[0]
  redis: Redis
  keys: QueueKeys
  log: Logger
  stop: Life['stop']
}

/**
 * Checks the layout of the documents (except for a dashboard), and that the queue feeds this store:
 * now, and every five seconds. While MongoDB or Redis is unavailable, tries again. A later refusal
 * stops the process.
 *
 * @throws {StoreLayoutError | OtherStoreError} if the first check refuses within `FIRST_MS`.
 */
export async function watchStore({ kind, db, redis, keys, log, stop }: WatchDeps) {
  const { promise: fed, resolve } = Promise.withResolvers<void>()
  let isWorkedOn = false
  let isFed = false
  let unread: { since: number; reason: string } | undefined

  /** Only workers write what a store or a queue does not know of itself. */
  async function readOwn() {
    if (kind === 'worker') return noteStore(db)
    if (kind === 'api') await checkLayout(db, AbortSignal.timeout(CHECK_EVERY_MS))
    return readStore(db)
  }

  function noteUnread(error: unknown): never {
    if (error instanceof StoreLayoutError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    if (unread === undefined) log.warn({ reason }, 'store.not_checked')
    unread ??= { since: performance.now(), reason }
    throw error
  }

  async function check(): Promise<void> {
    if (redis.status === 'ready') isWorkedOn ||= (await readFedStore(redis, keys)) !== undefined
    const own = await readOwn().catch(noteUnread)
    unread = undefined
    if (redis.status !== 'ready' || !(await checkFedStore(redis, keys, own, kind === 'worker')))
      return
    // A copy of the database has the same id.
    await readMarks(redis, keys, db)
    if (isFed) return
    // Perhaps it is this process that stopped before, and its settings were corrected.
    await noteOtherStore(redis, keys)
    isFed = true
    isWorkedOn = true
    resolve()
  }

  async function keepChecking(): Promise<never> {
    for (;;) {
      await check().catch(async (error) => {
        if (!(error instanceof OtherStoreError || error instanceof StoreLayoutError)) return
        const name = `${kind} ${hostname()}:${process.pid}`
        const by = { at: new Date().toISOString(), process: name, text: error.message }
        await noteOtherStore(redis, keys, by).catch(() => {})
        throw error
      })
      await delay(isFed ? CHECK_EVERY_MS : CHECK_AGAIN_MS, undefined, { ref: false })
    }
  }

  const checking = keepChecking()
  await Promise.race([checking, fed, delay(FIRST_MS, undefined, { ref: false })])
  checking.catch((err) => {
    log.error({ err }, 'store.refused')
    stop(err.message)
  })
  return {
    /** Resolves when the queue is known to feed this store. */
    fed,
    /** Whether a worker has ever worked on the queue. */
    isWorkedOn: () => isWorkedOn,
    /** For how long MongoDB has not answered the first check, and why. */
    unread: () =>
      isFed || !unread
        ? undefined
        : { ms: performance.now() - unread.since, reason: unread.reason },
  }
}
