// Finds the format of each set of files: the one that `--format` names, else the first one that recognises them.

import { UserError } from '@sluice/terminal'
import type { Format, InputFile } from '../formats/format.ts'
import { readBeginning } from '../formats/read/utf8-chunks.ts'
import type { InputSet } from './input.ts'
import { adviceOnOutlook } from './outlook-files.ts'

export interface FormattedFiles {
  format: Format
  files: InputFile[]
}

/**
 * Finds the format of each set. Only if no format recognises all files that were named one by one, each is recognised
 * alone.
 *
 * @throws {UserError} if no format recognises a file, or `--format` names none.
 */
export async function detectFormats(sets: readonly InputSet[], formats: readonly Format[], named?: string) {
  for (const { name, files } of sets)
    if (files.every(({ isEmpty }) => isEmpty)) throw new UserError(`${name} is empty.`)
  if (named === undefined) return (await Promise.all(sets.map((set) => formatsOf(set, formats)))).flat()
  const format = formats.find(({ name }) => name === named)
  if (format === undefined) throw new UserError(`--format must be one of ${namesOf(formats)}.`)
  return sets.map(({ files }) => ({ format, files }))
}

function namesOf(formats: readonly Format[]): string {
  return formats.map(({ name }) => name).join(', ')
}

async function formatsOf({ name, files }: InputSet, formats: readonly Format[]): Promise<FormattedFiles[]> {
  const read = new Map<InputFile, Promise<Buffer>>()
  const beginning = (file: InputFile) => {
    const bytes = read.get(file) ?? readBeginning(file)
    read.set(file, bytes)
    return bytes
  }
  const recognise = async (some: readonly InputFile[]) => {
    for (const format of formats) if (await format.recognises(some, beginning)) return format
    return undefined
  }
  const format = await recognise(files)
  if (format !== undefined) return [{ format, files }]
  const found: FormattedFiles[] = []
  for (const file of files) {
    const ofFile = files.length > 1 ? await recognise([file]) : undefined
    if (ofFile === undefined) {
      const what = files.length === 1 ? file.path : `${name} (such as ${file.path} in it)`
      const advice = adviceOn(file.path, await beginning(file), formats)
      throw new UserError(`The format of ${what} is not recognised. ${advice}`)
    }
    // Files of one format that follow each other are read together, because their threads may span them.
    const last = found.at(-1)
    if (last?.format === ofFile) last.files.push(file)
    else found.push({ format: ofFile, files: [file] })
  }
  return found
}

const ZIP = Buffer.from('PK\x03\x04')
const GZIP = Buffer.from([0x1f, 0x8b])
const TAR = Buffer.from('ustar')
const TAR_AT = 257

function adviceOn(path: string, beginning: Buffer, formats: readonly Format[]): string {
  const has = (magic: Buffer, at = 0) => beginning.subarray(at, at + magic.length).equals(magic)
  if (beginning.length === 0) return 'It is empty.'
  const outlook = adviceOnOutlook(path)
  if (outlook !== undefined) return outlook
  if (has(ZIP) && /\.(xlsx|xlsm|ods|numbers)$/i.test(path)) return 'It is a spreadsheet: save it as CSV (UTF-8).'
  if (has(ZIP)) return 'It is a zip archive: save it as a file of its own whose name ends in .zip, and name that.'
  if (has(TAR, TAR_AT) || /\.tgz$/i.test(path)) return 'It is a tar archive: unpack it (tar -xf), and name the folder.'
  if (has(GZIP)) return 'It is compressed: give it a name that ends in .gz.'
  return `These were tried: ${namesOf(formats)}. Name one with --format.`
}
