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

function createRowReader(path: string, wanted: number) {
  let sheet = -1
  let rows: SheetRow[] = []
  let [number, repeated, column] = [0, 1, 0]
  let cells: string[] = []
  let hasOwn = false
  let cell: { text: string; paragraphs: number; attributes: Attributes; isCovered: boolean } | undefined
  let isInParagraph = false
  /** Merged cells of several rows, by their columns. Only the first cell has a value, which counts for each row. */
  const spans = new Map<number, Span>()
  /** How many comments are open. They have paragraphs, too. */
  let comments = 0

  function endCell({ text, attributes, isCovered }: NonNullable<typeof cell>): void {
    const times = Math.min(countOf(attributes, 'number-columns-repeated'), MOST_COLUMNS)
    const own = textOfCell(attributes, text)
    const bottom = number + countOf(attributes, 'number-rows-spanned') - 1
    if (bottom > number) spans.set(column, { text: own, bottom })
    for (let at = 0; at < times; at++) {
      const span = spans.get(column)
      const value = isCovered && own === '' && span !== undefined && span.bottom >= number ? span.text : own
      if (value !== '') {
        while (cells.length < column) cells.push('')
        cells[column] = value
      }
      column += 1
    }
    hasOwn ||= own !== '' && !isCovered
  }

  function endRow(): void {
    const times = hasOwn ? Math.min(repeated, MOST_REPEATED_ROWS) : 0
    for (let at = 0; at < times; at++) rows.push({ number: number + at, cells: [...cells] })
    number += repeated - 1
  }

  return {
    handler: {
      open(name: string, attributes: Attributes) {
        if (name === 'table') {
          sheet += 1
          number = 0
        }
        if (sheet !== wanted) return
        if (name === 'annotation') comments += 1
        if (name === 'table-row') {
          number += 1
          repeated = countOf(attributes, 'number-rows-repeated')
          column = 0
          cells = []
          hasOwn = false
        }
        if (name === 'table-cell' || name === 'covered-table-cell')
          cell = { text: '', paragraphs: 0, attributes, isCovered: name === 'covered-table-cell' }
        else if (cell !== undefined && comments === 0) {
          isInParagraph ||= name === 'p'
          if (name === 'p') cell.text += cell.paragraphs++ === 0 ? '' : '\n'
          if (name === 'line-break') cell.text += '\n'
          if (name === 'tab') cell.text += '\t'
          if (name === 's') cell.text += ' '.repeat(Math.min(countOf(attributes, 'c'), MOST_COLUMNS))
        }
      },
      text(part: string) {
        if (cell !== undefined && comments === 0 && isInParagraph) cell.text = addText(cell.text, part, path)
      },
      close(name: string) {
        if (sheet !== wanted) return
        if (name === 'annotation') comments -= 1
        if (name === 'p' && comments === 0) isInParagraph = false
        if (/^(covered-)?table-cell$/.test(name) && cell !== undefined) {
          endCell(cell)
          cell = undefined
        }
        if (name === 'table-row') endRow()
      },
    },
    take(): SheetRow[] {
      const taken = rows
      rows = []
      return taken
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
