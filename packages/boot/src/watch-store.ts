// Keeps a process from using documents of another layout, or a queue that feeds another store
// (docs/adr/0023-identity-and-marks.md).
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Life, Logger } from '@sluice/process'
import type { Redis } from '@sluice/process/redis'
import {
  asError,
  checkFedStore,
  noteOtherStore,
  OtherStoreError,
  type QueueKeys,
  readFedStore,
} from '@sluice/queue'
import {
  checkLayout,
  readStore,
  reasonBehind,
  registerStore,
  StoreLayoutError,
} from '@sluice/store/connect'
import { readMarks } from './marks.ts'

/** The start waits at most this long for the first check. */
const FIRST_MS = 1_000
const CHECK_EVERY_MS = 5_000
/** Before the first success, a check is repeated this often: until then, a worker takes no job. */
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
 * now, and every five seconds. While MongoDB or Redis is unavailable, tries again. If a later check
 * refuses, stops the process.
 *
 * @throws {StoreLayoutError | OtherStoreError} if the first check refuses within `FIRST_MS`.
 */
export async function watchStore({ kind, db, redis, keys, log, stop }: WatchDeps) {
  const { promise: fed, resolve } = Promise.withResolvers<void>()
  let isWorkedOn = false
  let isFed = false
  let unread: { since: number; reason: string } | undefined

  /** Reads this process's store. Only a worker writes its number and its id if they are absent. */
  async function readOwn() {
    if (kind === 'worker') return registerStore(db)
    if (kind === 'api') await checkLayout(db, AbortSignal.timeout(CHECK_EVERY_MS))
    return readStore(db)
  }

  function noteUnread(error: unknown): never {
    if (error instanceof StoreLayoutError) throw error
    const { message: reason } = asError(reasonBehind(error, db.client))
    if (unread === undefined) log.warn({ reason }, 'store.not_checked')
    unread ??= { since: performance.now(), reason }
    throw error
  }

  async function check(): Promise<void> {
    const wasFed = redis.status === 'ready' && (await readFedStore(redis, keys)) !== undefined
    isWorkedOn ||= wasFed
    const own = await readOwn().catch(noteUnread)
    unread = undefined
    // The first worker may have written the store's id since it was read.
    if (own.id === undefined && !wasFed) return
    if (redis.status !== 'ready' || !(await checkFedStore(redis, keys, own, kind === 'worker')))
      return
    // A copy of the database has the same id, so compare the marks as well.
    await readMarks(redis, keys, db)
    if (isFed) return
    // Remove the note: perhaps this process stopped earlier, and its settings have been corrected.
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
    /** Returns whether a worker has ever used the queue. */
    isWorkedOn: () => isWorkedOn,
    /** Returns for how long MongoDB has not answered the first check, and why. */
    unread: () =>
      isFed || !unread
        ? undefined
        : { ms: performance.now() - unread.since, reason: unread.reason },
  }
}
