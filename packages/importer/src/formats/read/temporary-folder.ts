// Makes folders for files that must be on the disk while they are read.
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const prefixOf = (pid: number | undefined) => `sluice-import-${pid}-`

/** Makes a folder. The caller must remove it. */
export async function makeTemporaryFolder(): Promise<string> {
  return await mkdtemp(join(tmpdir(), prefixOf(process.pid)))
}

/** Removes the folders that a killed process has left. */
export async function removeTemporaryFolders(pid: number | undefined): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => name.startsWith(prefixOf(pid)))
  for (const name of names) await rm(join(tmpdir(), name), { recursive: true, force: true })
}
