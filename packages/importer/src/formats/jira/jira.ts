// Reads Jira's issues, from the CSV that a search exports (which repeats the column "Comment"), and
// from answers of the API.
import type { Format, FormatOptions, Found, InputFile, QuoteInput } from '../format.ts'
import { eachFile, piecesOf, rejected } from '../format.ts'
import {
  byColumns,
  type CsvRow,
  csvColumns,
  faultOfRows,
  foundInRows,
  readCsvRows,
  rowsOfBeginning,
} from '../read/csv-rows.ts'
import { jsonShape } from '../read/json-beginning.ts'
import { foundIn, readJsonFile, recordsAndLists } from '../read/json-records.ts'
import { readBeginning } from '../read/utf8-chunks.ts'
import { asTexts, present } from '../values/record-fields.ts'
import { createDateReader, type ReadDate } from '../values/written-values.ts'
import { isAnswer, readAnswer } from './api-issue.ts'
import { withNames } from './document.ts'

/** Matches a comment such as `01/May/24 9:30 AM;ada;It burns.` The text may contain semicolons. */
const COMMENT = /^([^;\n]*);([^;\n]*);(.*)$/s

const piece = piecesOf('custom')
const RECORDS = recordsAndLists('issues')
const isCsv = byColumns('Summary', 'Issue key', 'Issue id')

/** Reads each issue as a source. Its description is the first quote. */
export const jiraFormat: Format = {
  name: 'jira',
  title: 'Jira',
  description: 'Jira: the CSV export (all fields), or JSON of the REST API',
  sourceIs: 'an issue',
  howTo: 'search for issues, Export, CSV (all fields)',
  options: ['dateFormat', 'timezone'],
  recognises: (_, beginning) => isCsv(beginning) || isAnswer(jsonShape(beginning)),
  faultOf: async (file, beginning, options) => {
    if (isAnswer(jsonShape(beginning))) return undefined
    const rows = rowsOfBeginning(file.path, beginning)
    return await faultOfRows(foundInRows(file, issueReader(options, new Map()), rows))
  },
  read: eachFile(async function* (file, options) {
    const { root } = jsonShape(await readBeginning(file))
    if (root !== '{' && root !== '[')
      yield* foundInRows(file, issueReader(options, await namesIn(file)))
    else yield* foundIn(readJsonFile(file, RECORDS), ({ value, place }) => readAnswer(value, place))
  }),
}

type Names = ReadonlyMap<string, string>

function issueReader(options: FormatOptions, names: Names): (row: CsvRow) => Found {
  const dates = createDateReader(options)
  return (row) => readIssue(row, dates, names)
}

/** Comments have only ids. Columns such as "Reporter" and "Reporter Id" have names for them. */
async function namesIn(file: InputFile): Promise<Names> {
  const names = new Map<string, string>()
  const columns = csvColumns(await readBeginning(file))
  const people = [...new Set(columns)].filter((name) => columns.includes(`${name} Id`))
  if (people.length === 0) return names
  for await (const { rows } of readCsvRows(file))
    for (const row of rows)
      for (const column of people) {
        const [ids, shown] =
          row.kind === 'row' ? [cellsOf(row, `${column} Id`), cellsOf(row, column)] : [[], []]
        // If a cell were blank, each person would get the name of the next one.
        if (ids.length === shown.length)
          for (const [at, id] of ids.entries()) names.set(id, shown[at] ?? id)
      }
  return names
}

/** Returns the cells of a column that may occur several times. */
function cellsOf({ fields }: CsvRow, column: string): string[] {
  return fields.flatMap(([name, value]) => (name === column ? [value] : []))
}

function readIssue(row: CsvRow, dates: ReadDate, names: Names): Found {
  const { values, place, raw } = row
  const key = values.get('Issue key')
  const title = values.get('Summary')
  if (key === undefined || title === undefined)
    return rejected('an issue without a key or a summary', place, raw)
  const comments = cellsOf(row, 'Comment').map((cell) => COMMENT.exec(cell) ?? [cell, '', '', cell])
  const dated = [values.get('Created'), values.get('Updated'), ...comments.map(([, date]) => date)]
  const wrong = dated.find((date) => date && dates.read(date) === undefined)
  if (wrong !== undefined) return rejected(`A date ${dates.faultOf(wrong)}`, place, raw)
  const dateIn = (text = '') => dates.read(text)
  const nameOf = (id = '') => names.get(id) ?? id
  const createdAt = dateIn(values.get('Created'))
  // In front of an attachment's name are its date and its author.
  const attachments = cellsOf(row, 'Attachment').flatMap((cell) => cell.split(';')[2] ?? [])
  const speaker = values.get('Reporter') ?? values.get('Creator')
  const written = [values.get('Description'), values.get('Environment')]
  const text = withNames(asTexts(written).join('\n'), names)
  const own: QuoteInput = { externalId: key, text, ...present({ speaker, createdAt, attachments }) }
  const ids = new Map<string, number>()
  const answers = comments.map(([, date, author, words = '']): QuoteInput => {
    // A comment has no id. It is identified by its minute, its author, and a number among comments
    // with the same two.
    const id = `${key}/${dateIn(date) ?? ''}/${author}`
    const number = (ids.get(id) ?? 0) + 1
    ids.set(id, number)
    const externalId = number === 1 ? id : `${id}/${number}`
    return {
      externalId,
      text: withNames(words, names),
      ...present({ speaker: nameOf(author), createdAt: dateIn(date) }),
    }
  })
  const quotes = text === '' && attachments.length === 0 ? answers : [own, ...answers]
  const project = { channelName: values.get('Project name'), channelId: values.get('Project key') }
  const fields = { title, ...present({ createdAt, ...project }) }
  const order = dateIn(values.get('Updated')) ?? ''
  return piece(`jira/${key}`, order, fields, quotes, place)
}
