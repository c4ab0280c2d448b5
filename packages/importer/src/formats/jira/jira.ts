// Issues of Jira, in the CSV that a search exports. It repeats the column "Comment" for each comment.
import { eachFile, type Format, type FormatOptions, type Found, type QuoteInput, rejected } from '../format.ts'
import { type CsvRow, csvColumns, readCsvRows } from '../read/csv-rows.ts'
import { present } from '../values/record-fields.ts'
import { createDateReader, type ReadDate } from '../values/written-values.ts'

/** `01/May/24 9:30 AM;ada;It burns.` The text may have semicolons. */
const COMMENT = /^([^;\n]*);([^;\n]*);(.*)$/s

/** Reads each issue as a source. Its description is the first quote. */
export const jiraFormat: Format = {
  name: 'jira',
  description: 'Jira issues with comments: the CSV export (all fields)',
  howTo: 'search for issues, Export, CSV (all fields)',
  options: ['dateFormat', 'timezone'],
  recognises: (_, beginning) => {
    const columns = csvColumns(beginning)
    return ['Summary', 'Issue key', 'Issue id'].every((name) => columns.includes(name))
  },
  read: eachFile(async function* (file, options: FormatOptions) {
    const dates = createDateReader(options)
    for await (const { rows } of readCsvRows(file))
      yield rows.map((row) => (row.kind === 'row' ? readIssue(row, dates) : row))
  }),
}

function readIssue({ values, fields: cells, place, raw }: CsvRow, dates: ReadDate): Found {
  const key = values.get('Issue key')
  const title = values.get('Summary')
  if (key === undefined || title === undefined) return rejected('an issue without a key or a summary', place, raw)
  const cellsOf = (column: string) => cells.flatMap(([name, value]) => (name === column ? [value] : []))
  const comments = cellsOf('Comment').map((cell) => COMMENT.exec(cell) ?? [cell, '', '', cell])
  const written = [values.get('Created'), values.get('Updated'), ...comments.map(([, date]) => date)]
  const wrong = written.find((date) => date && dates.read(date) === undefined)
  if (wrong !== undefined) return rejected(`A date ${dates.faultOf(wrong)}`, place, raw)
  const dateIn = (text = '') => dates.read(text)
  const createdAt = dateIn(values.get('Created'))
  // The date and the author of an attachment stand before its name.
  const attachments = cellsOf('Attachment').flatMap((cell) => cell.split(';')[2] ?? [])
  const speaker = values.get('Reporter') ?? values.get('Creator')
  const text = values.get('Description') ?? ''
  const own: QuoteInput = { externalId: key, text, ...present({ speaker, createdAt, attachments }) }
  const ids = new Map<string, number>()
  const answers = comments.map(([, date, author, words = '']): QuoteInput => {
    // A comment has no id: its minute, its author and its number of these identify it.
    const id = `${key}/${dateIn(date) ?? ''}/${author}`
    const number = (ids.get(id) ?? 0) + 1
    ids.set(id, number)
    const externalId = number === 1 ? id : `${id}/${number}`
    return { externalId, text: words, ...present({ speaker: author, createdAt: dateIn(date) }) }
  })
  const quotes = text === '' && attachments.length === 0 ? answers : [own, ...answers]
  const project = { channelName: values.get('Project name'), channelId: values.get('Project key') }
  const fields = { title, ...present({ createdAt, ...project }) }
  const order = dateIn(values.get('Updated')) ?? ''
  return { kind: 'piece', service: 'custom', externalId: `jira/${key}`, order, fields, quotes, place }
}
