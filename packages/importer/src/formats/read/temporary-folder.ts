// Folders for files that have to lie on the disk while they are read.
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const prefixOf = (pid: number | undefined) => `sluice-import-${pid}-`

/** Makes a folder, which the caller removes. */
export async function makeTemporaryFolder(): Promise<string> {
  return await mkdtemp(join(tmpdir(), prefixOf(process.pid)))
}

/** Removes the folders that a process had when it was killed. */
export async function removeTemporaryFolders(pid: number | undefined): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => name.startsWith(prefixOf(pid)))
  for (const name of names) await rm(join(tmpdir(), name), { recursive: true, force: true })
}
