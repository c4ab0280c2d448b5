// Finds the format of each set of files: the one that `--format` names, else the first one that recognises them.
import { type Format, type InputFile, readBeginning } from '@sluice/formats'
import type { InputSet } from './input.ts'
import { InputError } from './read-counted.ts'

/** Files, and the format that reads them. */
export interface FormattedFiles {
  format: Format
  files: readonly InputFile[]
}

/**
 * Files that were named one by one may be of several formats, unless one format recognises them together.
 *
 * @throws {InputError} if no format recognises a file, or `--format` names none.
 */
export async function detectFormats(
  sets: readonly InputSet[],
  formats: readonly Format[],
  named: string | undefined,
): Promise<FormattedFiles[]> {
  if (named !== undefined) {
    const format = formats.find(({ name }) => name === named)
    if (format === undefined) throw new InputError(`--format must be one of ${namesOf(formats)}.`)
    return sets.map(({ files }) => ({ format, files }))
  }
  const beginning = createBeginnings()
  const recognise = async (files: readonly InputFile[]) => {
    for (const format of formats) if (await format.recognises(files, beginning)) return format
    return undefined
  }
  return (await Promise.all(sets.map((set) => formatsOf(set, recognise, formats)))).flat()
}

async function formatsOf(
  { name, files }: InputSet,
  recognise: (files: readonly InputFile[]) => Promise<Format | undefined>,
  formats: readonly Format[],
): Promise<FormattedFiles[]> {
  const format = await recognise(files)
  if (format !== undefined) return [{ format, files }]
  const found: FormattedFiles[] = []
  for (const file of files.length > 1 ? files : []) {
    const ofFile = await recognise([file])
    if (ofFile !== undefined) found.push({ format: ofFile, files: [file] })
  }
  if (found.length < files.length || found.length === 0) {
    const unknown = files.find((file) => !found.some((one) => one.files.includes(file)))?.path ?? name
    const what = files.length === 1 ? unknown : `${name} (such as ${unknown} in it)`
    throw new InputError(
      `The format of ${what} is not recognised. These were tried: ${namesOf(formats)}. Name one with --format.`,
    )
  }
  return joinNeighbours(found)
}

/** Files of one format that follow each other are read together, because their threads may span them. */
function joinNeighbours(found: readonly FormattedFiles[]): FormattedFiles[] {
  const joined: { format: Format; files: InputFile[] }[] = []
  for (const { format, files } of found) {
    const last = joined.at(-1)
    if (last?.format === format) last.files.push(...files)
    else joined.push({ format, files: [...files] })
  }
  return joined
}

function namesOf(formats: readonly Format[]): string {
  return formats.map(({ name }) => name).join(', ')
}

/** Reads the beginning of a file once. */
function createBeginnings(): (file: InputFile) => Promise<Buffer> {
  const known = new Map<InputFile, Promise<Buffer>>()
  return (file) => {
    const beginning = known.get(file) ?? readBeginning(file)
    known.set(file, beginning)
    return beginning
  }
}
