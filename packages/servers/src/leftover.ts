// Makes sure that only one server at a time works on a data folder.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { processFacts } from './machine.ts'

/** Another Sluice process runs a server on this data already. */
export class DataInUse extends Error {
  override readonly name = 'DataInUse'
}

interface Owner {
  readonly pid: number
  readonly parent: number
  readonly program: string
}

const graceMs = 5_000

/** Records beside the data which process serves it. */
export async function recordOwner(folder: string, pid: number, program: string): Promise<void> {
  const owner: Owner = { pid, parent: process.pid, program: basename(program) }
  await writeFile(ownerFile(folder), JSON.stringify(owner), { mode: 0o600 })
}

/** Removes that record, once the process has ended. */
export async function forgetOwner(folder: string): Promise<void> {
  await rm(ownerFile(folder), { force: true })
}

/**
 * Ends a server that still serves this data after its parent has died: two servers on the same files would corrupt
 * them. Throws DataInUse if the parent lives.
 */
export async function endLeftover(folder: string): Promise<void> {
  const owner = await ownerOf(folder)
  if (owner === undefined) return
  const facts = await processFacts(owner.pid)
  // Another program may have this process id by now.
  if (facts === undefined || !facts.command.includes(owner.program)) return
  if (facts.parent === owner.parent) {
    throw new DataInUse(
      `${folder} is in use: process ${owner.parent} runs ${owner.program} on it (process ${owner.pid})`,
    )
  }
  await endGroup(owner.pid)
}

async function endGroup(group: number): Promise<void> {
  const until = performance.now() + graceMs
  signal(group, 'SIGTERM')
  while (performance.now() < until && (await processFacts(group)) !== undefined) await pause(50)
  signal(group, 'SIGKILL')
}

async function ownerOf(folder: string): Promise<Owner | undefined> {
  try {
    return JSON.parse(await readFile(ownerFile(folder), 'utf8'))
  } catch {
    return undefined
  }
}

function ownerFile(folder: string): string {
  return join(folder, 'sluice-owner.json')
}

function signal(group: number, name: NodeJS.Signals): void {
  try {
    process.kill(-group, name)
  } catch {}
}
