// Starts an engine on its data folder and waits until it serves.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { boundMemory } from './bound-memory.ts'
import { endOfLog, type LaunchedProcess, launchProcess } from './launch-process.ts'
import { endLeftover, forgetOwner, recordOwner } from './leftover.ts'
import type { Engine, Location } from './provider.ts'

/** A server ended, or took too long, before it answered. */
export class ServerDidNotStart extends Error {
  override readonly name = 'ServerDidNotStart'
}

/** Long enough to replay a large log. */
const readyWithinMs = 120_000
const askEveryMs = 50
const graceMs = 10_000

/** The file with the output of a server. */
export function serverLog({ folder }: Location): string {
  return join(folder, 'server.log')
}

/** Starts an engine at a location and waits until it serves. Throws ServerDidNotStart, DataInUse, or the signal's reason; leaves no process behind then. */
export async function startEngine(engine: Engine, location: Location, signal: AbortSignal): Promise<LaunchedProcess> {
  signal.throwIfAborted()
  await mkdir(location.folder, { recursive: true, mode: 0o700 })
  await endLeftover(location.folder)
  await engine.prepare?.(location)
  const { command, args } = engine.command(location)
  const log = serverLog(location)
  const launched = await launchProcess({ command, args, log, graceMs })
  await recordOwner(location.folder, launched.pid, command)
  const ended = launched.died.finally(() => forgetOwner(location.folder))
  const died = engine.maxBytes === undefined ? ended : boundMemory(launched, ended, engine.maxBytes)
  try {
    await untilReady(engine, location, signal, died)
    return { ...launched, died }
  } catch (error) {
    await launched.stop(AbortSignal.abort())
    await died
    if (!(error instanceof ServerDidNotStart)) throw error
    throw new ServerDidNotStart(`${engine.title} ${error.message}; the end of ${log}:\n${await endOfLog(log)}`)
  }
}

async function untilReady(
  engine: Engine,
  location: Location,
  signal: AbortSignal,
  died: Promise<string>,
): Promise<void> {
  let end: string | undefined
  void died.then((how) => {
    end = how
  })
  const until = performance.now() + readyWithinMs
  while (!(await engine.isReady(location))) {
    signal.throwIfAborted()
    if (end !== undefined) throw new ServerDidNotStart(`ended before it answered (${end})`)
    if (performance.now() > until) throw new ServerDidNotStart(`did not answer within ${readyWithinMs / 1000} s`)
    await pause(askEveryMs)
  }
  if (end !== undefined)
    throw new ServerDidNotStart(
      `ended while it started (${end}); does another program listen on port ${location.port}?`,
    )
}
