import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Puts a shell script of this name into a folder, as a program that a machine may have. */
export async function standInProgram(folder: string, name: string, script: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  const file = join(folder, name)
  await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return file
}
