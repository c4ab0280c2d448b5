import { once } from 'node:events'
import type { Logger } from 'pino'
import { createReleasers, type Releasers } from './releasers.ts'

/** What a starting process is given. */
export interface Life {
  /** Notes how to give back what was just acquired; given back last-in first-out. */
  release: Releasers['add']
  /** Aborts as soon as the process is told to stop, also while it still starts. */
  stopping: AbortSignal
}

/**
 * Starts a process and stops it in order, at SIGTERM, SIGINT or when the parent that spawned it with an IPC channel is
 * gone. A stop during the start waits for the start to settle. Exits 0 after an orderly stop; 1 where the start or a
 * release failed, where an error was caught by nobody, or once the grace time is over. A parent hears `{ ready: true }`.
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
  const held = createReleasers(log)
  exitOnUncaughtErrors(log)
  stopping.signal.addEventListener('abort', () => limitTheStop(stopping.signal.reason, graceSeconds, log))
  stopWhenTold((reason) => stopping.abort(reason))

  const failed = await live(start({ release: held.add, stopping: stopping.signal }), stopping, log)
  const clean = await held.releaseAll()
  log.info({ failed, clean }, 'process.stopped')
  return process.exit(clean && !failed ? 0 : 1)
}

/** From the start to the moment at which all is to be given back; true where the start failed by itself. */
async function live(started: Promise<void>, stopping: AbortController, log: Logger): Promise<boolean> {
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
    tellParent({ ready: true })
    await once(stopping.signal, 'abort')
  }
  return false
}

function stopWhenTold(stop: (reason: string) => void): void {
  // Listeners that stay: a second signal must not fall back to killing a process that is busy stopping.
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  if (process.send === undefined) return
  process.on('disconnect', () => stop('parent gone'))
  if (!process.connected) stop('parent gone')
}

function limitTheStop(reason: unknown, graceSeconds: number, log: Logger): void {
  log.info({ reason, graceSeconds }, 'process.stopping')
  const overrun = () => {
    log.error({ graceSeconds }, 'process.stop_overran')
    process.exit(1)
  }
  // Keeps the process up while it stops, so that it ends by an exit of ours and never for want of work.
  setTimeout(overrun, graceSeconds * 1_000)
}

function exitOnUncaughtErrors(log: Logger): void {
  // Rejections that nobody handles arrive here too.
  process.on('uncaughtException', (err) => {
    log.fatal({ err }, 'process.crashed')
    process.exit(1)
  })
}

function tellParent(message: { ready: true }): void {
  // A parent that is already gone is told of by 'disconnect'; that it can't hear this is no failure of ours.
  process.send?.(message, undefined, undefined, () => {})
}
