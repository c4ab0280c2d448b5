import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { plot } from './plot.ts'
import type { Result } from './result.ts'

/** Writes `name.json` and, where contenders were measured, `name.svg`; a scenario's newest run replaces the one before. */
export async function writeResult(folder: string, result: Result): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, `${result.name}.json`), `${JSON.stringify(result, null, 2)}\n`)
  if (result.measured.length > 0) await writeFile(join(folder, `${result.name}.svg`), plot(result))
}

/** The newest results of the scenarios in a folder. */
export async function readResults(folder: string): Promise<Result[]> {
  const files = (await readdir(folder).catch(() => [])).filter((file) => file.endsWith('.json'))
  return Promise.all(files.map(async (file): Promise<Result> => JSON.parse(await readFile(join(folder, file), 'utf8'))))
}
