// Logs the errors of Redis: connections alone have several a second while it is unavailable, and a
// script that it refuses fails for each job.
import type { Logger } from '@sluice/process'

const EVERY_MS = 10_000

/**
 * Makes a function that logs the first error, then in each EVERY_MS the newest one and their
 * number, and the end, once there was none for EVERY_MS and Redis `isReady`.
 */
export function createRedisErrorLog(log: Pick<Logger, 'info' | 'warn'>, isReady: () => boolean) {
  return createLog(
    ({ message: err }, errors) => log.warn({ err, errors }, 'redis.error'),
    () => {
      if (isReady()) log.info('redis.recovered')
      return isReady()
    },
  )
}

/** Does the same for each script that Redis refuses, without the end. */
export function createScriptErrorLog(log: Pick<Logger, 'error'>) {
  const logs = new Map<string, ReturnType<typeof createLog>>()
  return (script: string, error: Error): void => {
    const note =
      logs.get(script) ??
      createLog((err, errors) => log.error({ script, err, errors }, 'redis.script_failed'))
    logs.set(script, note)
    note(error)
  }
}

function createLog(report: (newest: Error, errors: number) => void, isOver = () => true) {
  let timer: NodeJS.Timeout | undefined
  let [newest, errors]: [Error | undefined, number] = [undefined, 0]

  function tick(): void {
    if (newest) report(newest, errors)
    else if (isOver()) {
      clearInterval(timer)
      timer = undefined
    }
    newest = undefined
    errors = 0
  }

  return (error: Error): void => {
    newest = error
    errors += 1
    if (timer !== undefined) return
    timer = setInterval(tick, EVERY_MS).unref()
    tick()
  }
}
