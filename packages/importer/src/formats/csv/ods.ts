// Reads the sheets of an OpenDocument spreadsheet. Memory: the rows of a chunk.
import {
  type Attributes,
  addText,
  attribute,
  numberText,
  type Sheet,
  type SheetRow,
  type Workbook,
} from './xml-entry.ts'

const CONTENT = 'content.xml'
/** Repeated cells and rows are written out up to these numbers. Programs repeat empty ones to the edge of the sheet. */
const MOST_COLUMNS = 16_384
const MOST_REPEATED_ROWS = 10_000

interface Span {
  text: string
  /** The last row of the merged cell. */
  bottom: number
}

/** Returns the sheets by their order. Each is read from the same file. */
export async function readOds(workbook: Workbook): Promise<Sheet[]> {
  const hidden = new Set<string>()
  const sheets: Sheet[] = []
  let style = ''
  const parsing = workbook.parse(CONTENT, {
    open(name, attributes) {
      if (name === 'style') style = attribute(attributes, 'name') ?? ''
      if (name === 'table-properties' && attribute(attributes, 'display') === 'false') hidden.add(style)
      if (name !== 'table') return
      const isHidden = hidden.has(attribute(attributes, 'style-name') ?? '')
      const at = sheets.length
      sheets.push({ name: attribute(attributes, 'name') ?? '', isHidden, rows: () => readRows(workbook, at) })
    },
  })
  for await (const _ of parsing);
  return sheets
}

async function* readRows(workbook: Workbook, sheet: number): AsyncGenerator<SheetRow[]> {
  const reader = createRowReader(workbook.path, sheet)
  for await (const _ of workbook.parse(CONTENT, reader.handler)) yield reader.take()
}

/** What is known of the sheet up to the tag that is read. */
interface Position {
  sheet: number
  row: number
  /** How many rows are alike. */
  alike: number
  column: number
  cells: string[]
  /** Whether the row has cells of its own, not only those of merged cells. */
  hasOwn: boolean
  cell: { text: string; paragraphs: number; attributes: Attributes; isCovered: boolean } | undefined
  isInParagraph: boolean
  /** How many comments are open. They have paragraphs, too. */
  comments: number
  /** Merged cells of several rows, by their columns. Only the first cell has a value, which counts for each row. */
  spans: Map<number, Span>
}

const START = { sheet: -1, row: 0, alike: 1, column: 0, hasOwn: false, isInParagraph: false, comments: 0 }

function createRowReader(path: string, wanted: number) {
  const at: Position = { ...START, cells: [], cell: undefined, spans: new Map() }
  let rows: SheetRow[] = []
  return {
    handler: {
      open(name: string, attributes: Attributes) {
        if (name === 'table') Object.assign(at, { sheet: at.sheet + 1, row: 0 })
        if (at.sheet !== wanted) return
        if (NO_TEXT.test(name)) at.comments += 1
        if (name === 'table-row') beginRow(at, attributes)
        if (CELL.test(name)) at.cell = { text: '', paragraphs: 0, attributes, isCovered: name.startsWith('covered') }
        else if (at.comments === 0) addBreak(at, name, attributes)
      },
      text(part: string) {
        if (at.cell !== undefined && at.comments === 0 && at.isInParagraph)
          at.cell.text = addText(at.cell.text, part, path)
      },
      close(name: string) {
        if (at.sheet !== wanted) return
        if (NO_TEXT.test(name)) at.comments -= 1
        if (name === 'p' && at.comments === 0) at.isInParagraph = false
        if (CELL.test(name)) endCell(at)
        if (name === 'table-row') rows.push(...endRow(at))
      },
    },
    take(): SheetRow[] {
      const taken = rows
      rows = []
      return taken
    },
  }
}

const CELL = /^(covered-)?table-cell$/
/** A note on a cell, and the reading of a word. */
const NO_TEXT = /^(annotation|ruby-text)$/

function beginRow(at: Position, attributes: Attributes): void {
  const alike = countOf(attributes, 'number-rows-repeated')
  Object.assign(at, { row: at.row + 1, alike, column: 0, cells: [], hasOwn: false })
}

/** Adds what an element within a cell stands for. */
function addBreak(at: Position, name: string, attributes: Attributes): void {
  const { cell } = at
  if (cell === undefined) return
  if (name === 'p') {
    at.isInParagraph = true
    cell.text += cell.paragraphs++ === 0 ? '' : '\n'
  }
  if (name === 'line-break') cell.text += '\n'
  if (name === 'tab') cell.text += '\t'
  if (name === 's') cell.text += ' '.repeat(Math.min(countOf(attributes, 'c'), MOST_COLUMNS))
}

function endCell(at: Position): void {
  if (at.cell === undefined) return
  const { text, attributes, isCovered } = at.cell
  const own = textOfCell(attributes, text)
  const bottom = at.row + countOf(attributes, 'number-rows-spanned') - 1
  if (bottom > at.row) at.spans.set(at.column, { text: own, bottom })
  for (let times = Math.min(countOf(attributes, 'number-columns-repeated'), MOST_COLUMNS); times > 0; times--) {
    const span = at.spans.get(at.column)
    const value = isCovered && own === '' && span !== undefined && span.bottom >= at.row ? span.text : own
    if (value !== '') {
      while (at.cells.length < at.column) at.cells.push('')
      at.cells[at.column] = value
    }
    at.column += 1
  }
  at.hasOwn ||= own !== '' && !isCovered
  at.cell = undefined
}

function endRow(at: Position): SheetRow[] {
  const { row, cells, hasOwn, alike } = at
  at.row += alike - 1
  const length = hasOwn ? Math.min(alike, MOST_REPEATED_ROWS) : 0
  return Array.from({ length }, (_, index) => ({ number: row + index, cells }))
}

function countOf(attributes: Attributes, name: string): number {
  return Number(attribute(attributes, name) ?? 1) || 1
}

function textOfCell(attributes: Attributes, text: string): string {
  const type = attribute(attributes, 'value-type')
  if (type === 'date') return attribute(attributes, 'date-value') ?? text
  if (type === 'float' || type === 'currency' || type === 'percentage')
    return numberText(attribute(attributes, 'value') ?? text)
  return text
}
