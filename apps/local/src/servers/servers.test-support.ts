// What the tests of this package share: folders, programs and machines of their own, and the wait
// for the end of a process.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { processFacts } from '@sluice/terminal'
import type { TestContext } from 'vitest'
import type { Machine } from './provider.ts'

/** A folder that is removed after the test. */
export async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-servers-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Puts a shell script of this name into a folder, as a program that a machine may have. */
export async function fakeProgram(folder: string, name: string, script: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  const file = join(folder, name)
  await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return file
}

/** A machine with these folders, which keeps the lines that `say` receives. */
export function machineOf({
  path,
  cacheDir,
}: Pick<Machine, 'path' | 'cacheDir'>): Machine & { lines: string[] } {
  const lines: string[] = []
  return {
    path,
    cacheDir,
    lines,
    say: (line) => void lines.push(line),
    signal: new AbortController().signal,
  }
}

/** Waits until a process has ended; one that is not our own child can only be polled. */
export async function untilGone(pid: number): Promise<void> {
  while ((await processFacts(pid)) !== undefined) await pause(10)
}
