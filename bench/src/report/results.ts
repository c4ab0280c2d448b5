import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { kindOfServer } from './describe-surroundings.ts'
import { plot } from './plot.ts'
import type { Result } from './result.ts'

/** The name of a result's files: a scenario has one result for each kind of server. */
export function fileNameOf({ name, where }: Pick<Result, 'name' | 'where'>): string {
  return `${name}-${kindOfServer(where).toLowerCase().replaceAll(' ', '-')}`
}

/** The scenario whose picture README shows. */
const DRAWN = 'callers-64'

/**
 * Writes a JSON file, and the picture for README; a scenario's newest run on a kind of server
 * replaces the one before.
 */
export async function writeResult(folder: string, result: Result): Promise<void> {
  const file = join(folder, fileNameOf(result))
  await mkdir(folder, { recursive: true })
  await writeFile(`${file}.json`, textOf(result))
  if (result.name === DRAWN) await writeFile(`${file}.svg`, plot(result))
}

/** Has a line for each field, and for each element of a list. */
function textOf({ measured, ...others }: Result): string {
  const all = { ...others, measured: measured.map(({ name, median }) => ({ name, median })) }
  const fields = Object.entries(all).map(([name, value]) => {
    const lines =
      Array.isArray(value) && value.map((element) => JSON.stringify(element)).join(',\n    ')
    return `  "${name}": ${lines ? `[\n    ${lines}\n  ]` : JSON.stringify(value)}`
  })
  return `{\n${fields.join(',\n')}\n}\n`
}

/** The newest results of the scenarios in a folder, by the names of their files. */
export async function readResults(folder: string): Promise<Result[]> {
  const files = (await readdir(folder).catch(() => []))
    .filter((file) => file.endsWith('.json'))
    .sort()
  return Promise.all(
    files.map(
      async (file): Promise<Result> => JSON.parse(await readFile(join(folder, file), 'utf8')),
    ),
  )
}
