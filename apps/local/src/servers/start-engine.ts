// Starts an engine on its data folder, on which no other may run, waits until it serves, and stops
// it if it uses too much memory.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { processFacts } from '@sluice/terminal'
import { type LaunchedProcess, launchProcess, signalGroup, untilReady } from './launch-process.ts'
import { type Engine, type Location, UnusableData } from './provider.ts'

/** Long enough to replay a large log. */
const readyWithinMs = 120_000
const askEveryMs = 50
const graceMs = 10_000

export function serverLog({ folder }: Location): string {
  return join(folder, 'server.log')
}

/**
 * Starts an engine and waits until it serves.
 * @throws {DidNotStart | UnusableData} or the signal's reason.
 */
export async function startEngine(
  engine: Engine,
  location: Location,
  signal: AbortSignal,
): Promise<LaunchedProcess> {
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
  const ready = async (until: AbortSignal) => {
    while (!(await engine.isReady(location))) await pause(askEveryMs, undefined, { signal: until })
  }
  const server = { ...launched, died }
  await untilReady(server, { title: engine.title, log, withinMs: readyWithinMs, ready }, signal)
  return server
}

interface Owner {
  readonly pid: number
  readonly parent: number
  readonly program: string
}

const leftoverGraceMs = 5_000

/** Records, beside the data, which process serves it. */
export async function recordOwner(folder: string, pid: number, program: string): Promise<void> {
  const owner: Owner = { pid, parent: process.pid, program: basename(program) }
  await writeFile(ownerFile(folder), JSON.stringify(owner), { mode: 0o600 })
}

/** Removes the record of `recordOwner` when the process has ended. */
export async function forgetOwner(folder: string): Promise<void> {
  await rm(ownerFile(folder), { force: true })
}

/**
 * Ends a server that still serves this data although its parent has died, because two servers would
 * corrupt the files.
 * @throws {UnusableData} if the parent is alive.
 */
export async function endLeftover(folder: string): Promise<void> {
  const owner: Owner | undefined = await readFile(ownerFile(folder), 'utf8')
    .then(JSON.parse)
    .catch(() => undefined)
  if (owner === undefined) return
  const facts = await processFacts(owner.pid)
  // Another program may have got this process id since.
  if (facts === undefined || !facts.command.includes(owner.program)) return
  if (facts.parent === owner.parent) {
    const { parent, program, pid } = owner
    throw new UnusableData(
      `${folder} is in use: process ${parent} runs ${program} on it (process ${pid})`,
    )
  }
  await endGroup(owner.pid)
}

async function endGroup(group: number): Promise<void> {
  const until = performance.now() + leftoverGraceMs
  signalGroup(group, 'SIGTERM')
  while (performance.now() < until && (await processFacts(group)) !== undefined) await pause(50)
  signalGroup(group, 'SIGKILL')
}

function ownerFile(folder: string): string {
  return join(folder, 'sluice-owner.json')
}

/**
 * Memory is checked this often. A server that grows by 1 GB a second exceeds its bound by at most
 * 250 MB.
 */
const LOOK_MS = 250

/**
 * Stops a process in an orderly way when it uses more than `maxBytes` of memory. `ulimit -v` does
 * not suffice: a server that gets no memory may stop answering without ending.
 *
 * @returns how the process ended, or that it used too much memory.
 */
export async function boundMemory(
  { pid, stop }: Pick<LaunchedProcess, 'pid' | 'stop'>,
  ended: Promise<string>,
  maxBytes: number,
): Promise<string> {
  let reason: string | undefined
  const looking = setInterval(async () => {
    const { bytes = 0 } = (await processFacts(pid)) ?? {}
    if (bytes <= maxBytes) return
    reason ??= `stopped, because it used ${megabytes(bytes)} of memory and may use ${megabytes(maxBytes)}`
    await stop()
  }, LOOK_MS).unref()
  const how = await ended
  clearInterval(looking)
  return reason ?? how
}

/** Rounds up, so that a size above a bound is never shown as the bound. */
function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024 / 1024)} MiB`
}
