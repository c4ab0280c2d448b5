// Finds the format of each file: the format that `--format` names, otherwise the first format that
// recognises the file.
import { counted, UserError } from '@sluice/terminal'
import type { UnreadFile } from '../account/ledger.ts'
import type { Format, FormatOptions, InputFile, Noted, Rejected } from '../formats/format.ts'
import { rejectedFile, UnreadableFile } from '../formats/format.ts'
import { optionsOf } from '../formats/format-options.ts'
import { readBeginning } from '../formats/read/utf8-chunks.ts'
import type { InputSet } from './input.ts'
import { adviceOn, countIfWithoutMessages, RELATIVES, rowOf } from './known-relatives.ts'

/** Files of an input that a format reads together, because their threads may span several files. */
export interface FormattedFiles {
  format: Format
  files: InputFile[]
  /** Returns the input to which a file belongs: what the user has named. */
  inputOf: (path: string) => string
}

export interface Detected {
  read: FormattedFiles[]
  unread: UnreadFile[]
  /** Formats that would read an unread file if it had what they need. Their options apply, too. */
  lacking: Format[]
  /** Files without messages, and files that can't be read. */
  notes: (Noted | Rejected)[]
}

/**
 * Finds the format of each file.
 *
 * @throws {UserError} if no format recognises any file, or if `--format` names no known format.
 */
export async function detectFormats(
  sets: readonly InputSet[],
  formats: readonly Format[],
  named?: string,
  options: FormatOptions = { map: new Map(), set: new Map() },
): Promise<Detected> {
  for (const { name, files } of sets)
    if (files.every(({ isEmpty }) => isEmpty)) throw new UserError(`${name} is empty.`)
  const format = formats.find(({ name }) => name === named)
  if (named !== undefined && format === undefined)
    throw new UserError(`--format must be one of ${namesOf(formats)}.`)
  const all: Detected = { read: [], unread: [], lacking: [], notes: [] }
  const isAlone = sets.flatMap(({ files }) => files).length === 1
  for (const set of sets)
    addTo(
      all,
      format === undefined
        ? await detectIn(set, { formats, options, isAlone })
        : await readAs(format, set),
    )
  if (all.read.length === 0) throw nothingRead(all)
  return all
}

function addTo(all: Detected, { read, unread, lacking, notes }: Detected): void {
  all.read.push(...read)
  all.unread.push(...unread)
  all.lacking.push(...lacking)
  all.notes.push(...notes)
}

/** Leaves out archives, and files that the named format would count as sent by people. */
async function readAs(format: Format, set: InputSet): Promise<Detected> {
  const files = set.files.filter(({ path, isNamed }) => isNamed || !ARCHIVE.test(path))
  const archives = set.files
    .filter((file) => !files.includes(file))
    .map(({ path }) => ({ name: path, advice: '' }))
  const all = {
    read: [{ format, files, inputOf: inputIn(set) }],
    unread: archives,
    lacking: [],
    notes: [],
  }
  if (format.skipsOthers !== true || files.length < 2) return all
  const options = { map: new Map(), set: new Map() }
  const detected = await detectIn({ ...set, files }, { formats: [format], options, isAlone: false })
  return detected.read.length === 0
    ? all
    : { ...detected, unread: [...archives, ...detected.unread] }
}

const ARCHIVE = /\.(zip|tgz|tar|tar\.gz|tar\.zst)$/i

function inputIn({ name, isList }: InputSet): (path: string) => string {
  return (path) => (isList ? path : name)
}

function nothingRead({ unread: [first, ...others], notes }: Detected): UserError {
  const more = others.length === 0 ? '' : ` and of ${counted(others.length, 'other file')}`
  if (first !== undefined)
    return new UserError(`The format of ${first.name}${more} is not recognised. ${first.advice}`)
  const damaged = notes.find(({ kind }) => kind === 'rejected')
  return new UserError(
    damaged ? `${damaged.place.path}: ${damaged.reason}` : 'No file of the input has messages.',
  )
}

interface Detecting {
  formats: readonly Format[]
  options: FormatOptions
  /** Whether the file is the whole input. If so, the import ends if the file lacks something. */
  isAlone: boolean
}

async function detectIn(set: InputSet, detecting: Detecting): Promise<Detected> {
  const { files } = set
  const { formats } = detecting
  const found = new Map<InputFile, Format>()
  const detected: Detected = { read: [], unread: [], lacking: [], notes: [] }
  // Some exports can be recognised by the names of files, which then need not be opened.
  claim(files, formats, found)
  const claimed = new Set(found.keys())
  const others: Unrecognised[] = []
  const archives = new Map<InputFile, Detected>()
  for (const file of files.filter((each) => !claimed.has(each))) {
    const result = await recognise(file, set, detecting)
    if ('read' in result) archives.set(file, result)
    else if ('reason' in result) {
      detected.notes.push(result)
      // The file is rejected here, so that no export owns it and meets the same error again.
      claimed.add(file)
    } else if ('advice' in result) others.push(result)
    else found.set(file, result.format)
  }
  const foreign = new Set(others.flatMap((other) => (other.isOfOtherProgram ? other.file : [])))
  claim(files, formats, found, { claimed, foreign, archives })
  for (const [file, within] of archives) if (!found.has(file)) addTo(detected, within)
  const present = new Set(found.values())
  for (const { file, writer } of others)
    if (writer && present.has(writer) && !found.has(file)) found.set(file, writer)
  const unread = others.filter((each) => !found.has(each.file))
  // The error names the first file, so put files first that show what the input is.
  unread.sort((a, b) => Number(b.known !== undefined) - Number(a.known !== undefined))
  for (const { file, advice, known, writer, lacking = [] } of unread) {
    const name = set.isList ? file.path : `${set.name}/${file.path}`
    // If nothing else is read, the user means the document.
    const isBeside =
      files.length > 1 && (known === undefined || found.size + detected.read.length > 0)
    const counted = isBeside && writer === undefined && countIfWithoutMessages(file)
    if (counted) detected.notes.push(counted)
    else detected.unread.push({ name, advice })
    detected.lacking.push(...lacking)
  }
  for (const format of new Set(files.flatMap((file) => found.get(file) ?? []))) {
    const ofFormat = files.filter((file) => found.get(file) === format)
    detected.read.push({ format, files: ofFormat, inputOf: inputIn(set) })
  }
  return detected
}

/** What is known before files are claimed: those claimed by name, and the content of archives. */
interface Known {
  claimed: ReadonlySet<InputFile>
  /** Files of programs of which nothing is read: their names make them no part of an export. */
  foreign: ReadonlySet<InputFile>
  archives: ReadonlyMap<InputFile, Detected>
}

/** Gives files to the exports that own them, except for files that were claimed earlier. */
function claim(
  files: readonly InputFile[],
  formats: readonly Format[],
  found: Map<InputFile, Format>,
  { claimed, foreign, archives }: Known = {
    claimed: new Set(),
    foreign: new Set(),
    archives: new Map(),
  },
): void {
  const taken = new Set(claimed)
  const isRecognised = (file: InputFile) =>
    found.has(file) || foreign.has(file) || (archives.get(file)?.read ?? []).length > 0
  const isNamed = (file: InputFile) => file.isNamed === true && found.has(file)
  for (const format of formats) {
    const own = new Set(files.filter((file) => found.get(file) === format).map(({ path }) => path))
    const owns = format.owns?.(files, own)
    for (const file of owns === undefined ? [] : files)
      if (
        !taken.has(file) &&
        (!isNamed(file) || own.has(file.path)) &&
        owns?.(file.path, isRecognised(file))
      ) {
        found.set(file, format)
        taken.add(file)
      }
  }
}

/**
 * A file that no format recognises.
 * `lacking`: the format that would read the file if the file had what the advice names.
 * `writer`: the format whose program wrote the file, by its beginning.
 * `known`: what the file is, if people often have it instead of an export.
 */
interface Unrecognised {
  file: InputFile
  advice: string
  known?: string | undefined
  isOfOtherProgram?: boolean | undefined
  lacking?: [Format]
  writer?: Format | undefined
}

type Recognised = { format: Format } | Unrecognised | Rejected | Detected

/** Finds the format of a file from its beginning, which is read only once. */
async function recognise(
  file: InputFile,
  set: InputSet,
  detecting: Detecting,
): Promise<Recognised> {
  const { formats, options, isAlone } = detecting
  if (file.openArchive !== undefined) return await lookInto(file, file.openArchive, set, detecting)
  try {
    const bytes = await readBeginning(file)
    const format = formats.find((each) => each.recognises(file, bytes))
    const mayLack = format === undefined || format.faultOf !== undefined
    const row = mayLack ? rowOf(RELATIVES, file.path, bytes) : undefined
    const [, known, isOfOtherProgram] = row ?? []
    if (format === undefined) {
      const writer = formats.find((each) => each.wrote?.(bytes, file.path))
      const advice = known ?? adviceOn(file.path, bytes, formats)
      return { file, advice, known, isOfOtherProgram, writer }
    }
    const isSilent = isAlone && known === undefined
    const fault = isSilent
      ? undefined
      : await format.faultOf?.(file, bytes, optionsOf(format, options))
    if (fault === undefined) return { format }
    return {
      file,
      advice: known === undefined ? fault : `${known} ${fault}`,
      known,
      isOfOtherProgram,
      lacking: [format],
    }
  } catch (error) {
    if (!(error instanceof UnreadableFile) || file.isNamed) throw error
    return rejectedFile(file, `The file can't be read: ${error.reason}`)
  }
}

/** Archives within the archive are not opened. */
async function lookInto(
  file: InputFile,
  openArchive: () => Promise<InputFile[]>,
  { name }: InputSet,
  detecting: Detecting,
): Promise<Recognised> {
  const files = await openArchive().catch((error) => String(Object(error).message))
  if (typeof files === 'string') return { file, advice: `It can't be opened: ${files}.` }
  if (files.length === 0) return { file, advice: 'It is an archive without files.' }
  return await detectIn({ name: `${name}/${file.path}`, files }, detecting)
}

function namesOf(formats: readonly Format[]): string {
  return formats.map(({ name }) => name).join(', ')
}
