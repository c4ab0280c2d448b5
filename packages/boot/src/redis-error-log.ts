// Logs the errors of Redis: connections alone have several a second while it is unavailable.
import type { Logger } from '@sluice/process'

const EVERY_MS = 10_000

/**
 * Makes a function that logs the first error, then in each EVERY_MS the newest one and their
 * number, and the end, once there was none for EVERY_MS and Redis `isReady`.
 */
export function createRedisErrorLog(log: Pick<Logger, 'info' | 'warn'>, isReady: () => boolean) {
  let timer: NodeJS.Timeout | undefined
  let [newest, errors] = ['', 0]

  function report(): void {
    if (errors > 0) log.warn({ err: newest, errors }, 'redis.error')
    else if (isReady()) {
      log.info('redis.recovered')
      clearInterval(timer)
      timer = undefined
    }
    errors = 0
  }

  return ({ message }: Error): void => {
    newest = message
    errors += 1
    if (timer !== undefined) return
    timer = setInterval(report, EVERY_MS).unref()
    report()
  }
}
