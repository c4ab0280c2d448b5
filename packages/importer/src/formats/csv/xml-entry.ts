// Reads the XML files of a workbook while they are inflated.
import { Parser } from 'htmlparser2'
import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl'
import { FormatError, type InputFile } from '../format.ts'
import { createBoundedBytes, LONGEST_RECORD_BYTES } from '../read/bounded-bytes.ts'
import { utf8Chunks } from '../read/utf8-chunks.ts'

/** The compressed workbook is kept in memory, because the list of its files is at its end. */
const LARGEST_BYTES = 128 * 1024 * 1024

export type Attributes = Readonly<Record<string, string>>

/**
 * Receives a file's elements, except those in `ASIDE`. Their names have no namespaces, which each
 * program abbreviates differently.
 */
export interface XmlHandler {
  open?: (name: string, attributes: Attributes) => void
  text?: (text: string) => void
  close?: (name: string) => void
}

export interface Workbook {
  path: string
  has: (name: string) => boolean
  /** Parses a file of the workbook, and yields after each chunk. A missing file counts as empty. */
  parse: (name: string, handler: XmlHandler) => AsyncGenerator<void>
}

/** Opens a workbook. Throws FormatError if it is too large. */
export async function openWorkbook(file: InputFile): Promise<Workbook> {
  const content = createBoundedBytes(LARGEST_BYTES)
  for await (const chunk of file.open()) content.add(chunk)
  const { bytes, isTooLong } = content.take()
  if (isTooLong)
    throw new FormatError(
      `${file.path} has more than ${LARGEST_BYTES} bytes. Save it as CSV (UTF-8).`,
    )
  const zip = await fromBufferPromise(bytes).catch((error: Error) => {
    throw new FormatError(
      `${file.path} is no workbook that can be read: ${error.message}. Save it as CSV (UTF-8).`,
    )
  })
  const entries = new Map<string, Entry>()
  // Some programs write `SharedStrings.xml`.
  for await (const entry of zip.eachEntry()) entries.set(entry.fileName.toLowerCase(), entry)
  return {
    path: file.path,
    has: (name) => entries.has(name.toLowerCase()),
    parse: (name, handler) => parseEntry(zip, entries.get(name.toLowerCase()), handler, file.path),
  }
}

/** The time of the parser grows with the square of the depth. */
const DEEPEST = 1_000

/**
 * Elements within a cell that are not part of its text: a comment (OpenDocument), and the
 * pronunciation of a word (Excel and OpenDocument).
 */
const ASIDE = new Set(['annotation', 'rPh', 'ruby-text'])

async function* parseEntry(
  zip: ZipFile,
  entry: Entry | undefined,
  handler: XmlHandler,
  path: string,
): AsyncGenerator<void> {
  if (entry === undefined) return
  let depth = 0
  /** The number of open elements of `ASIDE`. */
  let aside = 0
  let tagBytes = 0
  const parser = new Parser(
    {
      onopentag(qualified, attributes) {
        depth += 1
        tagBytes = 0
        const name = localName(qualified)
        if (ASIDE.has(name)) aside += 1
        if (aside === 0) handler.open?.(name, attributes)
      },
      ontext(text) {
        tagBytes = 0
        if (aside === 0) handler.text?.(text)
      },
      onclosetag(qualified) {
        depth -= 1
        const name = localName(qualified)
        if (aside === 0) handler.close?.(name)
        if (ASIDE.has(name)) aside -= 1
      },
    },
    { xmlMode: true },
  )
  const decoder = new TextDecoder()
  const stream = await zip.openReadStreamPromise(entry)
  for await (const chunk of utf8Chunks({ path: entry.fileName, open: () => stream })) {
    tagBytes += chunk.length
    parser.write(decoder.decode(chunk, { stream: true }))
    if (depth > DEEPEST || tagBytes > LONGEST_RECORD_BYTES)
      throw new FormatError(
        `${path} nests tags too deep, or has too long ones. Save it as CSV (UTF-8).`,
      )
    yield
  }
  parser.end(decoder.decode())
  yield
}

/** Passes on the beginnings of a file's elements. Resolves when the whole file is parsed. */
export async function parseAll(
  { parse }: Workbook,
  name: string,
  open: NonNullable<XmlHandler['open']>,
): Promise<void> {
  for await (const _ of parse(name, { open }));
}

/** Parses a sheet, and yields a list after each chunk: the rows that the handler has passed on. */
export async function* rowsIn(
  { parse }: Workbook,
  name: string,
  handlerOf: (rows: SheetRow[]) => XmlHandler,
): AsyncGenerator<SheetRow[]> {
  const rows: SheetRow[] = []
  for await (const _ of parse(name, handlerOf(rows))) yield rows.splice(0)
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

/** Returns an attribute by its name without a namespace. */
export function attribute(attributes: Attributes, name: string): string | undefined {
  return (
    attributes[name] ?? Object.entries(attributes).find(([key]) => localName(key) === name)?.[1]
  )
}

/** Appends to the text of a cell. Throws FormatError if a cell is longer than a record may be. */
export function addText(before: string, text: string, path: string): string {
  if (before.length + text.length <= LONGEST_RECORD_BYTES) return before + text
  throw new FormatError(`A cell of ${path} has more than ${LONGEST_RECORD_BYTES} characters.`)
}

/** A sheet has too many cells, which it describes with few bytes. */
export class SheetTooLarge extends FormatError {}

/** Counts cells that are not in the file: repeated ones, and empty ones before a far one. */
export type Expand = (row: number, cells: number) => void

const MOST_EXPANDED = 10_000_000
/** Empty cells up to this column are not counted, because large sheets have many. */
const NEAR_COLUMNS = 256

/** Bounds the memory and the time that repeated, merged and far cells need. */
export function createExpand({ path }: Workbook, sheet: string): Expand {
  let expanded = 0
  return (row, cells) => {
    expanded += cells
    if (expanded > MOST_EXPANDED)
      throw tooLarge(path, sheet, row, `${MOST_EXPANDED} repeated, merged or empty cells`)
  }
}

export function tooLarge(path: string, sheet: string, row: number, bound: string): SheetTooLarge {
  const place = `${path}, sheet ${sheet}, row ${row}`
  return new SheetTooLarge(
    `${place}: the sheet has more than ${bound}. Remove them, or save the sheet as CSV (UTF-8).`,
  )
}

/** Returns how many of the empty cells between two columns are counted. */
export function farCells(from: number, to: number): number {
  return Math.max(0, to - Math.max(from, NEAR_COLUMNS))
}

/** A row of a sheet, with the texts of its cells. */
export interface SheetRow {
  /** From 1. */
  number: number
  cells: string[]
}

export interface Sheet {
  name: string
  isHidden: boolean
  rows: () => AsyncGenerator<SheetRow[]>
}

/** From this number on, numbers have more digits than a spreadsheet keeps. */
const FIRST_ROUNDED = 1e15

/** Writes a number without its format. A rounded one gets an exponent, so that it is no id. */
export function numberText(text: string): string {
  const number = Number(text)
  if (text.trim() === '' || Number.isNaN(number)) return text
  return Math.abs(number) < FIRST_ROUNDED
    ? String(number)
    : number.toExponential().replace('e', 'E')
}
