// Reads the sheets of an OpenDocument spreadsheet. Keeps the rows of one chunk in memory.
import {
  type Attributes,
  addText,
  attribute,
  createExpand,
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

const CONTENT = 'content.xml'
/** Programs repeat empty cells up to the edge. Cells outside of it are not read. */
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
  await parseAll(workbook, CONTENT, (name, attributes) => {
    if (name === 'style') style = attribute(attributes, 'name') ?? ''
    if (name === 'table-properties' && attribute(attributes, 'display') === 'false')
      hidden.add(style)
    if (name !== 'table') return
    const isHidden = hidden.has(attribute(attributes, 'style-name') ?? '')
    const at = sheets.length
    const sheet = attribute(attributes, 'name') ?? ''
    const handlerOf = (rows: SheetRow[]) => rowHandler(workbook, sheet, at, rows)
    sheets.push({ name: sheet, isHidden, rows: () => rowsIn(workbook, CONTENT, handlerOf) })
  })
  return sheets
}

const CELL = /^(covered-)?table-cell$/

function rowHandler(
  workbook: Workbook,
  sheet: string,
  wanted: number,
  rows: SheetRow[],
): XmlHandler {
  const { path } = workbook
  const expand = createExpand(workbook, sheet)
  /** Merged cells, by column. Only the first has a value, which counts for each row. */
  const spans = new Map<number, Span>()
  /** `row`: its number. `alike`: the number of equal rows. */
  let [at, row, alike, column] = [-1, 0, 1, 0]
  let cells: string[] = []
  /** Whether the row has cells of its own, besides merged cells from above. */
  let hasOwn = false
  let cell: { text: string; paragraphs: number; of: Attributes; isCovered: boolean } | undefined
  let isInParagraph = false

  /** Adds the white space or line break for which an element within a cell stands. */
  function addBreak(name: string, attributes: Attributes): void {
    if (cell === undefined) return
    if (name === 'p') {
      isInParagraph = true
      cell.text += cell.paragraphs++ === 0 ? '' : '\n'
    }
    if (name === 'line-break') cell.text += '\n'
    if (name === 'tab') cell.text += '\t'
    if (name !== 's') return
    const spaces = Math.min(countOf(attributes, 'c'), MOST_COLUMNS)
    expand(row, spaces)
    cell.text += ' '.repeat(spaces)
  }

  function endCell(): void {
    if (cell === undefined) return
    const { text, of, isCovered } = cell
    const own = textOfCell(of, text)
    const bottom = row + countOf(of, 'number-rows-spanned') - 1
    if (bottom > row) spans.set(column, { text: own, bottom })
    const end = Math.min(column + countOf(of, 'number-columns-repeated'), MOST_COLUMNS)
    const isFilled = own !== '' || (isCovered && spans.size > 0)
    if (isFilled) expand(row, farCells(cells.length, column) + Math.max(0, end - column - 1))
    for (; isFilled && column < end; column++) {
      const span = isCovered && own === '' ? spans.get(column) : undefined
      const value = span !== undefined && span.bottom >= row ? span.text : own
      if (value === '') continue
      while (cells.length < column) cells.push('')
      cells[column] = value
    }
    column = Math.max(column, end)
    hasOwn ||= own !== '' && !isCovered
    cell = undefined
  }

  function endRow(): void {
    if (hasOwn && alike > MOST_REPEATED_ROWS)
      throw tooLarge(path, sheet, row, `${MOST_REPEATED_ROWS} rows that repeat one with a text`)
    if (hasOwn && alike > 1) expand(row, alike * cells.length)
    for (let copy = 0; hasOwn && copy < alike; copy++) rows.push({ number: row + copy, cells })
    row += alike - 1
  }

  return {
    open(name, attributes) {
      if (name === 'table') [at, row] = [at + 1, 0]
      if (at !== wanted) return
      if (name === 'table-row') {
        alike = countOf(attributes, 'number-rows-repeated')
        row += 1
        column = 0
        cells = []
        hasOwn = false
      }
      if (CELL.test(name))
        cell = { text: '', paragraphs: 0, of: attributes, isCovered: name.startsWith('covered') }
      else addBreak(name, attributes)
    },
    text(part) {
      if (cell !== undefined && isInParagraph) cell.text = addText(cell.text, part, path)
    },
    close(name) {
      if (at !== wanted) return
      if (name === 'p') isInParagraph = false
      if (CELL.test(name)) endCell()
      if (name === 'table-row') endRow()
    },
  }
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
