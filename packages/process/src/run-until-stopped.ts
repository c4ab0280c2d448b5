// Runs a process from its start to its orderly end. Releases everything that the process acquired.
// Exits 0 only if nothing failed.
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'

/** What `start` receives. */
export interface Life {
  /**
   * Registers the release of a resource that was just acquired. The newest resource is released
   * first.
   */
  release: (name: string, release: () => Promise<void> | void) => void
  /** Aborts when the process must stop, even if it is still starting. */
  stopping: AbortSignal
  /** Stops the process in an orderly way, for this reason. */
  stop: (reason: string) => void
  /**
   * Returns how much of the grace time is left to a process that stops, without so many ms at its
   * end. Never less than 0.
   */
  graceLeftMs: (keptMs: number) => number
}

/**
 * Starts a process, and stops it in an orderly way: after a signal, after `stop`, or when its
 * parent ends. A parent with an IPC channel gets `{ ready: true }` after the start. A stop during
 * the start waits until the start has ended. Exits 0 after an orderly stop. Exits 1 if the start or
 * a release failed, after an uncaught error, or when the grace time is over.
 */
export async function runUntilStopped({
  start,
  graceSeconds,
  log,
}: {
  start: (life: Life) => Promise<void>
  graceSeconds: number
  log: Logger
}): Promise<never> {
  const stopping = new AbortController()
  const acquired = new AsyncDisposableStack()
  let clean = true
  const release: Life['release'] = (name, end) =>
    acquired.defer(async () => {
      try {
        await end()
      } catch (err) {
        clean = false
        log.error({ err, resource: name }, 'resource.release_failed')
      }
    })
  // Unhandled rejections arrive here as well.
  process.on('uncaughtException', (err) => {
    log.fatal({ err }, 'process.crashed')
    process.exit(1)
  })
  let endsAt = Number.POSITIVE_INFINITY
  const graceLeftMs = (keptMs: number) => Math.max(0, endsAt - performance.now() - keptMs)
  stopping.signal.addEventListener('abort', () => {
    endsAt = performance.now() + graceSeconds * 1_000
    limitStop(stopping.signal.reason, graceSeconds, log)
  })
  const stop = (reason: string) => stopping.abort(reason)
  onStopRequest(stop)

  const failed = await live(
    start({ release, stopping: stopping.signal, stop, graceLeftMs }),
    stopping,
    log,
  )
  await acquired.disposeAsync()
  log.info({ failed, clean }, 'process.stopped')
  return exit(clean && !failed ? 0 : 1, log)
}

/** A process that ends waits at most this long for the reader of its log. */
const LAST_LINES_MS = 300

/**
 * Exits when all log lines have been written. Without the wait, lines that are written at the exit
 * would come before them.
 */
async function exit(code: number, log: Logger): Promise<never> {
  const written = new Promise<void>((resolve) => log.flush(() => resolve()))
  await Promise.race([written, delay(LAST_LINES_MS)])
  return process.exit(code)
}

/**
 * Waits for the start, then for a request to stop. Returns true if the start failed (and not
 * because of a stop).
 */
async function live(
  started: Promise<void>,
  stopping: AbortController,
  log: Logger,
): Promise<boolean> {
  try {
    await started
  } catch (err) {
    if (stopping.signal.aborted) {
      log.info({ err }, 'process.start_abandoned')
      return false
    }
    log.fatal({ err }, 'process.start_failed')
    stopping.abort('start failed')
    return true
  }
  if (!stopping.signal.aborted) {
    log.info('process.started')
    // If the parent has ended, the event 'disconnect' reports that, so ignore a failed send.
    process.send?.({ ready: true }, undefined, undefined, () => {})
    await once(stopping.signal, 'abort')
  }
  return false
}

function onStopRequest(stop: (reason: string) => void): void {
  // Keep these listeners: without them, a second signal would kill a process that is still
  // stopping.
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  if (process.send === undefined) return
  process.on('disconnect', () => stop('parent gone'))
  if (!process.connected) stop('parent gone')
}

function limitStop(reason: unknown, graceSeconds: number, log: Logger): void {
  log.info({ reason, graceSeconds }, 'process.stopping')
  const overrun = () => {
    log.error({ graceSeconds }, 'process.stop_overran')
    void exit(1, log)
  }
  // Not `unref`: the process must end by our own exit, and never because nothing keeps its event
  // loop alive.
  setTimeout(overrun, graceSeconds * 1_000)
}
