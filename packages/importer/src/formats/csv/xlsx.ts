// Reads the sheets of an Excel workbook (Office Open XML, ECMA-376). Keeps the texts
// that its cells share in memory.
import { FormatError } from '../format.ts'
import {
  type Attributes,
  addText,
  attribute,
  createExpand,
  type Expand,
  farCells,
  numberText,
  parseAll,
  rowsIn,
  type Sheet,
  type SheetRow,
  tooLarge,
  type Workbook,
  type XmlHandler,
} from './xml-entry.ts'

const WORKBOOK = 'xl/workbook.xml'
/** The most characters of the texts that cells share, which are kept in memory. */
const MOST_SHARED = 64 * 1024 * 1024

export function isXlsx({ has }: Workbook): boolean {
  return has(WORKBOOK)
}

/** What the cells of all sheets refer to. */
interface Book {
  texts: string[]
  /** Whether a style shows numbers as dates, by the index of the style. */
  isDate: boolean[]
  /** The number of days from 1899-12-30 to the workbook's first day. */
  firstDay: number
}

export async function readXlsx(workbook: Workbook): Promise<Sheet[]> {
  const targets = new Map<string, string>()
  const found: { name: string; id: string; isHidden: boolean }[] = []
  const book: Book = { texts: [], isDate: [], firstDay: 0 }
  await parseAll(workbook, 'xl/_rels/workbook.xml.rels', (name, { Id = '', Target = '' }) => {
    if (name === 'Relationship')
      targets.set(Id, Target.startsWith('/') ? Target.slice(1) : `xl/${Target}`)
  })
  await parseAll(workbook, WORKBOOK, (name, attributes) => {
    if (name === 'workbookPr' && /^(1|true)$/.test(attributes.date1904 ?? ''))
      book.firstDay = DAYS_TO_1904
    const { state = 'visible', name: title = '' } = attributes
    if (name === 'sheet')
      found.push({
        name: title,
        id: attribute(attributes, 'id') ?? '',
        isHidden: state !== 'visible',
      })
  })
  await readStyles(workbook, book)
  await readTexts(workbook, book)
  // Each sheet has a file of its own, which is read once.
  const sheets = new Map(found.map((sheet) => [targets.get(sheet.id), sheet]))
  return [...sheets.values()].map(({ id, ...sheet }) => ({
    ...sheet,
    rows: () => readRows(workbook, sheet.name, targets.get(id) ?? '', book),
  }))
}

/** Formats of dates and times that a workbook need not define. */
const isBuiltInDate = (id: number) =>
  (id >= 14 && id <= 22) ||
  (id >= 27 && id <= 36) ||
  id === 45 ||
  id === 47 ||
  (id >= 50 && id <= 58)

/** Matches the general format (also by its German name), and formats of durations. */
const NUMBER_FORMAT = /^(General|Standard)$|\[[hms]+\]/i

async function readStyles(workbook: Workbook, { isDate }: Book): Promise<void> {
  const dates = new Set<number>()
  let isOfCells = false
  await parseAll(workbook, 'xl/styles.xml', (name, { numFmtId = '', formatCode = '' }) => {
    const code = formatCode.replaceAll(/"[^"]*"|\\.|\[[^\]]*\]?|[_*]./g, '')
    if (name === 'numFmt' && !NUMBER_FORMAT.test(formatCode) && /[ymdhs]/i.test(code))
      dates.add(Number(numFmtId))
    // `cellStyleXfs` has elements with the same name, but they do not belong to cells.
    if (/^cell(Style)?Xfs$/.test(name)) isOfCells = name === 'cellXfs'
    if (name === 'xf' && isOfCells)
      isDate.push(dates.has(Number(numFmtId)) || isBuiltInDate(Number(numFmtId)))
  })
}

async function readTexts(workbook: Workbook, { texts }: Book): Promise<void> {
  let text = ''
  let characters = 0
  let isText = false
  const parsing = workbook.parse('xl/sharedStrings.xml', {
    open(name) {
      if (name === 'si') text = ''
      isText = name === 't'
    },
    text: (part) => {
      if (isText) text = addText(text, part, workbook.path)
    },
    close(name) {
      isText = false
      if (name !== 'si') return
      texts.push(withCharacters(text))
      characters += text.length
    },
  })
  for await (const _ of parsing)
    if (characters > MOST_SHARED)
      throw new FormatError(`${workbook.path} has too much text. Save it as CSV (UTF-8).`)
}

/** Excel writes what XML can't contain as `_x000D_`, which is a line end, or half of one. */
function withCharacters(text: string): string {
  if (!text.includes('_')) return text
  return text.replaceAll(/_x([0-9a-f]{4})_(\r?\n?)/gi, (_, hex: string, end: string) =>
    hex.toLowerCase() === '000d' ? '\n' : String.fromCharCode(Number.parseInt(hex, 16)) + end,
  )
}

/** Only the first of the merged cells has a value, which counts for each row. */
interface Merge {
  top: number
  bottom: number
  column: number
  text: string
}

async function* readRows(
  workbook: Workbook,
  sheet: string,
  name: string,
  book: Book,
): AsyncGenerator<SheetRow[]> {
  const expand = createExpand(workbook, sheet)
  const fill = createFill(await readMerges(workbook, sheet, name), expand)
  const handlerOf = (rows: SheetRow[]) => rowHandler(workbook.path, book, expand, rows)
  for await (const rows of rowsIn(workbook, name, handlerOf)) yield rows.flatMap(fill)
}

const MOST_MERGES = 500_000

/** Merged cells are listed behind all rows, so the sheet is parsed twice. */
async function readMerges(workbook: Workbook, sheet: string, name: string): Promise<Merge[]> {
  const merges: Merge[] = []
  await parseAll(workbook, name, (tag, { ref = '' }) => {
    const [, top, bottom] = /^[A-Z]+(\d+):[A-Z]+(\d+)$/.exec(ref) ?? []
    if (tag !== 'mergeCell' || top === bottom) return
    if (merges.length === MOST_MERGES)
      throw tooLarge(workbook.path, sheet, Number(top), `${MOST_MERGES} merged cells`)
    merges.push({ top: Number(top), bottom: Number(bottom), column: columnAt(ref), text: '' })
  })
  return merges
}

/** Fills merged cells, row by row. Drops a row that has no cells of its own. */
function createFill(merges: readonly Merge[], expand: Expand): (row: SheetRow) => SheetRow[] {
  const later = merges.toSorted((a, b) => b.top - a.top)
  let open: Merge[] = []
  return (row) => {
    if (row.cells.every((cell) => cell === '')) return []
    for (
      let next = later.at(-1);
      next !== undefined && next.top <= row.number;
      next = later.at(-1)
    ) {
      later.pop()
      open.push({ ...next, text: next.top === row.number ? (row.cells[next.column] ?? '') : '' })
    }
    expand(row.number, open.length)
    open = open.filter(({ bottom }) => bottom >= row.number)
    for (const { column, text } of open) {
      expand(row.number, farCells(row.cells.length, column))
      while (row.cells.length <= column) row.cells.push('')
      row.cells[column] ||= text
    }
    return [row]
  }
}

/** Stands for the result of a formula, if the program that wrote the file has not calculated it. */
const NOT_CALCULATED = '#CALC!'

function rowHandler(path: string, book: Book, expand: Expand, rows: SheetRow[]): XmlHandler {
  let row: SheetRow = { number: 0, cells: [] }
  let cell = { column: -1, type: '', style: 0, text: '', hasFormula: false }
  let isValue = false
  return {
    open(name: string, attributes: Attributes) {
      if (name === 'row') row = { number: Number(attributes.r ?? row.number + 1), cells: [] }
      const { r = '', t: type = 'n', s = '0' } = attributes
      if (name === 'c') {
        const column = r === '' ? cell.column + 1 : columnAt(r)
        cell = { column, type, style: Number(s), text: '', hasFormula: false }
      }
      if (name === 'f') cell.hasFormula = true
      isValue = name === 'v' || name === 't'
    },
    text(part: string) {
      if (isValue) cell.text = addText(cell.text, part, path)
    },
    close(name: string) {
      isValue = false
      if (name === 'row') {
        rows.push(row)
        cell.column = -1
      }
      if (name !== 'c') return
      if (cell.text === '' && cell.hasFormula && cell.type === 'n')
        cell = { ...cell, type: 'e', text: NOT_CALCULATED }
      if (cell.text === '') return
      expand(row.number, farCells(row.cells.length, cell.column))
      while (row.cells.length < cell.column) row.cells.push('')
      row.cells[cell.column] = textOf(cell, book)
    },
  }
}

/** Excel has at most this number of columns. */
const MOST_COLUMNS = 16_384

/** Returns the index of a column from a reference such as `AB12`. */
function columnAt(reference: string): number {
  let column = 0
  for (const letter of /^[A-Z]*/.exec(reference)?.[0] ?? '')
    column = column * 26 + letter.charCodeAt(0) - 64
  return Math.min(column, MOST_COLUMNS) - 1
}

function textOf(
  { type, style, text }: { type: string; style: number; text: string },
  book: Book,
): string {
  if (type === 's') return book.texts[Number(text)] ?? ''
  if (type === 'b') return text === '1' ? 'TRUE' : 'FALSE'
  if (type !== 'n') return withCharacters(text)
  return book.isDate[style] ? dateText(Number(text), book.firstDay) : numberText(text)
}

const DAY_MS = 86_400_000
const FIRST_DAY = Date.UTC(1899, 11, 30)
const DAYS_TO_1904 = 1_462

/** Writes a date without a zone. A number less than one becomes a time without a date. */
function dateText(days: number, firstDay: number): string {
  const date = new Date(FIRST_DAY + Math.round((days + firstDay) * DAY_MS))
  if (Number.isNaN(date.getTime())) return String(days)
  const text = date.toISOString().replace(/(\.000)?Z$/, '')
  return days < 1 ? text.slice(text.indexOf('T') + 1) : text.replace(/T00:00:00$/, '')
}
