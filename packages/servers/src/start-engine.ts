import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { endOfLog } from './end-of-log.ts'
import type { Engine, Spot } from './engine.ts'
import { type LaunchedProcess, launchProcess } from './launch-process.ts'
import { endLeftover, forgetOwner, noteOwner } from './leftover.ts'

/** A server ended, or took too long, before it answered. */
export class ServerDidNotStart extends Error {
  override readonly name = 'ServerDidNotStart'
}

/** Long enough to replay a large log. */
const readyWithinMs = 120_000
const askEveryMs = 50
const graceMs = 10_000

/** Starts an engine at its spot and waits until it serves. Throws ServerDidNotStart, DataInUse, or the signal's reason; leaves no process behind then. */
export async function startEngine(engine: Engine, spot: Spot, signal: AbortSignal): Promise<LaunchedProcess> {
  signal.throwIfAborted()
  await mkdir(spot.folder, { recursive: true, mode: 0o700 })
  await endLeftover(spot.folder)
  await engine.prepare?.(spot)
  const { command, args } = engine.command(spot)
  const log = join(spot.folder, 'server.log')
  const launched = await launchProcess({ command, args, log, graceMs })
  await noteOwner(spot.folder, launched.pid, command)
  const died = launched.died.finally(() => forgetOwner(spot.folder))
  try {
    await untilReady(engine, spot, signal, died)
    return { ...launched, died }
  } catch (error) {
    await launched.stop(AbortSignal.abort())
    await died
    if (!(error instanceof ServerDidNotStart)) throw error
    throw new ServerDidNotStart(`${engine.title} ${error.message}; the end of ${log}:\n${await endOfLog(log)}`)
  }
}

async function untilReady(engine: Engine, spot: Spot, signal: AbortSignal, died: Promise<string>): Promise<void> {
  let end: string | undefined
  void died.then((how) => {
    end = how
  })
  const until = performance.now() + readyWithinMs
  while (!(await engine.isReady(spot))) {
    signal.throwIfAborted()
    if (end !== undefined) throw new ServerDidNotStart(`ended before it answered (${end})`)
    if (performance.now() > until) throw new ServerDidNotStart(`did not answer within ${readyWithinMs / 1000} s`)
    await pause(askEveryMs)
  }
  if (end !== undefined)
    throw new ServerDidNotStart(`ended while it started (${end}); does another program listen on port ${spot.port}?`)
}
