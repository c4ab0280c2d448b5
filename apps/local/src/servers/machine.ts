// Asks this machine about its programs and its ports.
import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { access, constants } from 'node:fs/promises'
import { createServer, type ListenOptions, type Server } from 'node:net'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import type { Engine } from './provider.ts'

const run = promisify(execFile)

/**
 * Returns an engine that runs the first of these programs that is in the folders of `path`. Throws
 * if its version is below `oldest`.
 */
export async function installedEngine(
  names: readonly string[],
  oldest: string,
  path: string,
  engineOf: (title: string, folder: string, program: string) => Engine,
): Promise<Engine> {
  const program = await findProgram(names, path)
  const version = await versionOf(program)
  if (version === undefined) throw new Error(`${program} prints no version`)
  const isTooOld = version.localeCompare(oldest, 'en', { numeric: true }) < 0
  if (isTooOld) throw new Error(`${program} is ${version}, too old: ${oldest} or later`)
  return engineOf(`${program} ${version}`, 'installed', program)
}

/**
 * Returns the first of these programs that is in a folder of `path` (which has the form of PATH).
 * Throws if there is none.
 */
export async function findProgram(names: readonly string[], path: string): Promise<string> {
  for (const name of names) {
    for (const folder of path.split(delimiter).filter((folder) => folder !== '')) {
      const file = join(folder, name)
      if (await succeeds(access(file, constants.X_OK))) return file
    }
  }
  throw new Error(`no \`${names[0]}\` on the PATH`)
}

export async function versionOf(program: string): Promise<string | undefined> {
  const { stdout } = await run(program, ['--version'], { timeout: 10_000 }).catch(() => ({
    stdout: '',
  }))
  return /\bv=?(\d+\.\d+(?:\.\d+)?)/.exec(stdout)?.[1]
}

export function succeeds(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  )
}

// Below the ports that Linux assigns to outgoing connections. Otherwise, a client that tries to
// connect to a dead server's port could get that port for its own end.
const lowestPort = 20_000
const highestPort = 32_000
const portAttempts = 100

/**
 * Returns a TCP port on 127.0.0.1 on which nothing listens now. This function gives the port to no
 * other process until this process ends. Throws if it finds none.
 */
export async function freePort(): Promise<number> {
  for (let i = 0; i < portAttempts; i++) {
    const port = randomInt(lowestPort, highestPort)
    if (await takePort(port)) return port
  }
  throw new Error(
    `None of ${portAttempts} ports tried between ${lowestPort} and ${highestPort} is free`,
  )
}

/**
 * Returns whether this TCP port on 127.0.0.1 is free. If it is, no other process gets the port from
 * this function until this process ends.
 */
export async function takePort(port: number): Promise<boolean> {
  return (await reserve(port)) && (await isPortFree(port))
}

/** Returns whether a server could listen on this TCP port of `host` now. */
export async function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  const server = createServer()
  const isFree = await listens(server, { port, host, exclusive: true })
  server.close()
  return isFree
}

/**
 * Reserves a port by an abstract socket that has the port in its name (unix(7)), because seconds
 * may pass before a server listens on the port.
 */
function reserve(port: number): Promise<boolean> {
  return listens(createServer().unref(), { path: `\0sluice-port-${port}` })
}

function listens(server: Server, where: ListenOptions): Promise<boolean> {
  return succeeds(once(server.listen(where), 'listening'))
}

const SAY_EVERY_MS = 5_000

/**
 * Says every five seconds that the work continues, and for how long, so that a slow network does
 * not look like a hang.
 */
export async function sayTime<T>(
  what: string,
  work: Promise<T>,
  say: (line: string) => void,
): Promise<T> {
  const began = performance.now()
  const seconds = () => Math.round((performance.now() - began) / 1_000)
  const timer = setInterval(() => say(`${what}: ${seconds()} s so far`), SAY_EVERY_MS)
  return work.finally(() => clearInterval(timer))
}
