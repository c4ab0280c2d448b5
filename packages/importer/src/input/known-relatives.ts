// Recognises files that people have instead of files that can be read, and says what to download or
// save instead.
import { csvColumns } from '../formats/read/csv-rows.ts'
import { jsonShape } from '../formats/read/json-beginning.ts'
import { decodeBeginning } from '../formats/read/utf8-chunks.ts'
import relatives from './known-relatives.json' with { type: 'json' }

/** The marks of a file. A file must have all marks that are given here. */
interface Marks {
  /** Matches its path. */
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
  /** The names; names of items of a list also without the list. */
  known: ReadonlySet<string>
}

type Row = readonly [isShown: (facts: Facts) => boolean, advice: string]

const notRead = (what: string) =>
  `It is ${what}, which is not read: write its messages as CSV, a row for each (see --group-by and --map), or its threads as ndjson, as POST /sources accepts them.`

/** Files whose program is known. Rows that require less come later. */
export const RELATIVES: readonly Row[] = [
  ...rowsOf(relatives.programs, (advice) => advice),
  ...rowsOf(relatives.unread, notRead),
]

/** What a file is if its program is not known. */
export const SHAPES = rowsOf(relatives.shapes, (advice) => advice)

function rowsOf(
  table: Readonly<Record<string, readonly Marks[]>>,
  toAdvice: (name: string) => string,
): Row[] {
  return Object.entries(table).flatMap(([name, files]) =>
    files.map((marks): Row => [recogniser(marks), toAdvice(name)]),
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

/** Returns the advice of the first row that matches a file which no format reads. */
export function adviceOf(rows: readonly Row[], path: string, bytes: Buffer): string | undefined {
  const { root, members } = jsonShape(bytes)
  const names = root === '{' || root === '[' ? [...members] : csvColumns(bytes)
  const known = new Set(names.flatMap((name) => [name, name.replace(/^[\w.]*\[\]\./, '')]))
  const facts: Facts = { path, bytes, text: decodeBeginning(bytes), root, names, known }
  return rows.find(([isShown]) => isShown(facts))?.[1]
}
