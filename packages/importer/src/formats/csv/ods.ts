// Reads the sheets of an OpenDocument spreadsheet. Memory: the rows of a chunk.
import {
  type Attributes,
  addText,
  attribute,
  createExpand,
  type Expand,
  farCells,
  numberText,
  type Sheet,
  type SheetRow,
  tooLarge,
  type Workbook,
} from './xml-entry.ts'

const CONTENT = 'content.xml'
/**
 * Cells outside the edge of a sheet are not read, because programs repeat empty cells up to the
 * edge.
 */
const MOST_COLUMNS = 16_384
const MOST_REPEATED_ROWS = 10_000

interface Span {
  text: string
  /** The last row that the merged cell covers. */
  bottom: number
}

/** Returns the sheets in their order. Each is read from the same file. */
export async function readOds(workbook: Workbook): Promise<Sheet[]> {
  const hidden = new Set<string>()
  const sheets: Sheet[] = []
  let style = ''
  const parsing = workbook.parse(CONTENT, {
    open(name, attributes) {
      if (name === 'style') style = attribute(attributes, 'name') ?? ''
      if (name === 'table-properties' && attribute(attributes, 'display') === 'false')
        hidden.add(style)
      if (name !== 'table') return
      const isHidden = hidden.has(attribute(attributes, 'style-name') ?? '')
      const at = sheets.length
      const sheet = attribute(attributes, 'name') ?? ''
      sheets.push({ name: sheet, isHidden, rows: () => readRows(workbook, sheet, at) })
    },
  })
  for await (const _ of parsing);
  return sheets
}

async function* readRows(
  workbook: Workbook,
  sheet: string,
  at: number,
): AsyncGenerator<SheetRow[]> {
  const reader = createRowReader(workbook, sheet, at)
  for await (const _ of workbook.parse(CONTENT, reader.handler)) yield reader.take()
}

/** The state of reading a sheet, up to the current tag. */
interface Position {
  sheet: number
  row: number
  /** The number of equal rows. */
  alike: number
  column: number
  cells: string[]
  /** Whether the row has cells of its own, besides merged cells from above. */
  hasOwn: boolean
  cell: { text: string; paragraphs: number; attributes: Attributes; isCovered: boolean } | undefined
  isInParagraph: boolean
  /** The number of open comments, because comments also contain paragraphs. */
  comments: number
  /**
   * Merged cells that cover several rows, by column. Only the first cell has a value, which counts
   * for each row.
   */
  spans: Map<number, Span>
  expand: Expand
}

const START = {
  sheet: -1,
  row: 0,
  alike: 1,
  column: 0,
  hasOwn: false,
  isInParagraph: false,
  comments: 0,
}

function createRowReader(workbook: Workbook, sheet: string, wanted: number) {
  const { path } = workbook
  const at: Position = {
    ...START,
    cells: [],
    cell: undefined,
    spans: new Map(),
    expand: createExpand(workbook, sheet),
  }
  let rows: SheetRow[] = []
  return {
    handler: {
      open(name: string, attributes: Attributes) {
        if (name === 'table') Object.assign(at, { sheet: at.sheet + 1, row: 0 })
        if (at.sheet !== wanted) return
        if (NO_TEXT.test(name)) at.comments += 1
        if (name === 'table-row') beginRow(at, attributes)
        if (CELL.test(name))
          at.cell = { text: '', paragraphs: 0, attributes, isCovered: name.startsWith('covered') }
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
        if (name !== 'table-row') return
        if (at.hasOwn && at.alike > MOST_REPEATED_ROWS)
          throw tooLarge(
            path,
            sheet,
            at.row,
            `${MOST_REPEATED_ROWS} rows that repeat one with a text`,
          )
        for (const row of endRow(at)) rows.push(row)
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
/** Elements whose text is not read: a comment on a cell, and the reading of a word. */
const NO_TEXT = /^(annotation|ruby-text)$/

function beginRow(at: Position, attributes: Attributes): void {
  const alike = countOf(attributes, 'number-rows-repeated')
  Object.assign(at, { row: at.row + 1, alike, column: 0, cells: [], hasOwn: false })
}

/** Adds the white space or line break for which an element within a cell stands. */
function addBreak(at: Position, name: string, attributes: Attributes): void {
  const { cell } = at
  if (cell === undefined) return
  if (name === 'p') {
    at.isInParagraph = true
    cell.text += cell.paragraphs++ === 0 ? '' : '\n'
  }
  if (name === 'line-break') cell.text += '\n'
  if (name === 'tab') cell.text += '\t'
  if (name !== 's') return
  const spaces = Math.min(countOf(attributes, 'c'), MOST_COLUMNS)
  at.expand(at.row, spaces)
  cell.text += ' '.repeat(spaces)
}

function endCell(at: Position): void {
  if (at.cell === undefined) return
  const { text, attributes, isCovered } = at.cell
  const own = textOfCell(attributes, text)
  const bottom = at.row + countOf(attributes, 'number-rows-spanned') - 1
  if (bottom > at.row) at.spans.set(at.column, { text: own, bottom })
  const end = Math.min(at.column + countOf(attributes, 'number-columns-repeated'), MOST_COLUMNS)
  const isFilled = own !== '' || (isCovered && at.spans.size > 0)
  if (isFilled)
    at.expand(at.row, farCells(at.cells.length, at.column) + Math.max(0, end - at.column - 1))
  for (; isFilled && at.column < end; at.column++) {
    const span = at.spans.get(at.column)
    const value =
      isCovered && own === '' && span !== undefined && span.bottom >= at.row ? span.text : own
    if (value === '') continue
    while (at.cells.length < at.column) at.cells.push('')
    at.cells[at.column] = value
  }
  at.column = Math.max(at.column, end)
  at.hasOwn ||= own !== '' && !isCovered
  at.cell = undefined
}

function endRow(at: Position): SheetRow[] {
  const { row, cells, hasOwn, alike } = at
  at.row += alike - 1
  const length = hasOwn ? alike : 0
  if (length > 1) at.expand(row, length * cells.length)
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
