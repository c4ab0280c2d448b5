// Recognises files that no format reads. Counts those without messages. For files that people have
// instead of a readable export, it says what to download or save.
import type { Format, InputFile, Noted } from '../formats/format.ts'
import { csvColumns } from '../formats/read/csv-rows.ts'
import { fileBeside, isMedia, kindWithoutMessages } from '../formats/read/files-beside.ts'
import { jsonShape } from '../formats/read/json-beginning.ts'
import { decodeBeginning } from '../formats/read/utf8-chunks.ts'
import relatives from './known-relatives.json' with { type: 'json' }

/** The marks of a file. A file must have all marks that are given here. */
interface Marks {
  /** A regular expression that matches the file's path. */
  name?: string
  /** The file's first bytes, as Latin-1. */
  magic?: string
  /** The file's first character that is not white space. */
  root?: string
  /** Matches the text of the file's beginning, in linear time. */
  text?: string
  flags?: string
  /**
   * Names that the file must have: columns of CSV, or members of the first JSON value, or of the
   * items in a list of that value.
   */
  has?: readonly string[]
  /** Matches the path of a member of the first JSON value. */
  member?: string
}

interface Facts {
  path: string
  bytes: Buffer
  text: string
  root: string
  names: readonly string[]
  /** All `names`. A name in the items of a list is here also without the list. */
  known: ReadonlySet<string>
}

/** `isOfOtherProgram`: nothing of the program that wrote the file is read. */
type Row = readonly [isShown: (facts: Facts) => boolean, advice: string, isOfOtherProgram: boolean]

const notRead = (what: string) =>
  `It is ${what}, which is not read: write its messages as CSV, a row for each (see --group-by and --map), or its threads as ndjson, as POST /sources accepts them.`

/** Files whose program is known. Rows that require less come later. */
export const RELATIVES: readonly Row[] = [
  ...rowsOf(relatives.programs, (advice) => advice),
  ...rowsOf(relatives.unread, notRead, true),
]

/** Kinds of files that any program may write, such as a web page or an archive. */
const SHAPES = rowsOf(relatives.shapes, (advice) => advice)

function rowsOf(
  table: Readonly<Record<string, readonly Marks[]>>,
  toAdvice: (name: string) => string,
  isOfOtherProgram = false,
): Row[] {
  return Object.entries(table).flatMap(([name, files]) =>
    files.map((marks): Row => [recogniser(marks), toAdvice(name), isOfOtherProgram]),
  )
}

function recogniser({ name, magic, root, text, flags, has, member }: Marks): Row[0] {
  const [ofPath, ofText, ofMember] = [
    name && new RegExp(name, 'i'),
    text && new RegExp(text, flags),
    member && new RegExp(member),
  ]
  return (facts) =>
    (!ofPath || ofPath.test(facts.path)) &&
    (magic === undefined || facts.bytes.toString('latin1', 0, magic.length) === magic) &&
    (root === undefined || root === facts.root) &&
    (!ofText || ofText.test(facts.text)) &&
    (has === undefined || has.every((one) => facts.known.has(one))) &&
    (!ofMember || facts.names.some((one) => ofMember.test(one)))
}

/** Returns the first row that matches a file which no format reads. */
export function rowOf(rows: readonly Row[], path: string, bytes: Buffer): Row | undefined {
  const { root, members } = jsonShape(bytes)
  const names = root === '{' || root === '[' ? [...members] : csvColumns(bytes)
  const known = new Set(names.flatMap((name) => [name, name.replace(/^[\w.]*\[\]\./, '')]))
  const facts: Facts = { path, bytes, text: decodeBeginning(bytes), root, names, known }
  return rows.find(([isShown]) => isShown(facts))
}

/** Matches files that servers keep beside mails. */
const OF_SERVERS =
  /(^|\/)(dovecot[.-]|courier|cyrus\.|(subscriptions|maildirfolder|maildirsize)$)|\.sieve$/i
/** Matches files that Thunderbird, Apple Mail and Proton's export keep beside mails. */
const OF_PROGRAMS =
  /(^|\/)((popstate|panacea|msgFilterRules)\.dat|filterlog\.html|table_of_contents|labels\.json)$|\.(msf|snm|plist|metadata\.json)$/i
/** Matches files that explain an archive. */
const EXPLANATIONS = /(^|\/)(readme|licen[cs]e|copying)(\.\w+)?$/i

/**
 * Counts a file that has no messages: it is empty, or its name shows it. If the user has named the
 * file, only an empty file or a picture is counted (a pattern of the shell may name many pictures).
 * A document or an index is then reported as unread.
 */
export function countIfWithoutMessages(file: InputFile): Noted | undefined {
  if (file.isNamed && !file.isEmpty && !isMedia(file)) return undefined
  const isIndex = [OF_SERVERS, OF_PROGRAMS].some((names) => names.test(file.path))
  const kind = isIndex
    ? 'indexes of mail programs'
    : EXPLANATIONS.test(file.path)
      ? 'explanations'
      : undefined
  return kindWithoutMessages(file) || kind ? fileBeside(file, kind) : undefined
}

/** Says how to import a file that no format recognises. */
export function adviceOn(path: string, beginning: Buffer, formats: readonly Format[]): string {
  if (beginning.length === 0) return 'It is empty.'
  const names = formats.map(({ name }) => name).join(', ')
  const ofOther =
    formats.length === 1 ? `It is no file of ${names}, which --format names.` : undefined
  return (
    rowOf(SHAPES, path, beginning)?.[1] ??
    ofOther ??
    `These were tried: ${names}. Name one with --format, or write the threads as ndjson: a line for each, as POST /sources accepts it.`
  )
}
