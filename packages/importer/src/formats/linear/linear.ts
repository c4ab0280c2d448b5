// Reads Linear's issues, from its CSV export, and from answers of its API, which have comments.
import type { Format, Found, Place, QuoteInput } from '../format.ts'
import { eachFile, piecesOf, rejected, skipped } from '../format.ts'
import { byColumns, type CsvRow, foundInRows } from '../read/csv-rows.ts'
import { jsonShape } from '../read/json-beginning.ts'
import { foundIn, readJsonFile, recordsAndLists } from '../read/json-records.ts'
import { readBeginning } from '../read/utf8-chunks.ts'
import { nodesIn, nodesOf } from '../values/graphql.ts'
import { asIsoDate, isoDateIn } from '../values/iso-date.ts'
import { asObject, asText, type JsonObject, present } from '../values/record-fields.ts'

const piece = piecesOf('linear', (id) => ({ placeholderTitle: id }))
const isCsv = byColumns('ID', 'Team', 'Title', 'Description', 'Status', 'Creator', 'Created')
const RECORDS = recordsAndLists('issues', 'nodes')

/** Reads each issue as a source `ENG-7`. Its description is the first quote. */
export const linearFormat: Format = {
  name: 'linear',
  title: 'Linear',
  description: 'Linear: the CSV export, or JSON of the API',
  sourceIs: 'an issue, such as `ENG-7`',
  recognises: (_, beginning) => kindOf(beginning) !== undefined,
  read: eachFile(async function* (file) {
    if (kindOf(await readBeginning(file)) === 'csv') yield* foundInRows(file, readRow)
    else yield* foundIn(readJsonFile(file, RECORDS), ({ value, place }) => readRecord(value, place))
  }),
}

function kindOf(beginning: Buffer): 'csv' | 'json' | undefined {
  if (isCsv(beginning)) return 'csv'
  const members = [...jsonShape(beginning).members]
  const issues = members
    .filter((name) => name.endsWith('identifier'))
    .map((name) => name.slice(0, -'identifier'.length))
  const isIssue = (at: string) =>
    ['title', 'createdAt'].every((name) => members.includes(`${at}${name}`))
  return issues.some(isIssue) ? 'json' : undefined
}

function readRow({ values, place, raw }: CsvRow): Found {
  const externalId = values.get('ID')
  const title = values.get('Title')
  if (externalId === undefined || title === undefined)
    return rejected('an issue without ID or title', place, raw)
  const createdAt = dateIn(values.get('Created'))
  if (createdAt === undefined && values.has('Created'))
    return rejected(
      `Created is no date of Linear: ${values.get('Created')}. Was the file saved by a spreadsheet?`,
      place,
      raw,
    )
  const text = values.get('Description')
  const fields = { title, ...present({ channelName: values.get('Team'), createdAt }) }
  const quote = text && {
    externalId,
    text,
    ...present({ speaker: values.get('Creator'), createdAt }),
  }
  const order = dateIn(values.get('Updated')) ?? ''
  return piece(externalId, order, fields, quote ? [quote] : [], place)
}

/** A spreadsheet may have rewritten dates without a zone, or as 1/5/2024. */
function dateIn(text = ''): string | undefined {
  return (
    asIsoDate(text.replace(' ', 'T')) ?? (/GMT|UTC|Z$/.test(text) ? isoDateIn(text) : undefined)
  )
}

/** Reads an issue, or an answer: `{ data: { issue } }` or `{ data: { issues: { nodes } } }`. */
function readRecord(value: unknown, place: Place): Found[] {
  const issues = nodesIn(value, 'identifier')
  return (issues.length > 0 ? issues : [value]).flatMap((one) => readIssue(one, place))
}

function readIssue(value: unknown, place: Place): Found[] {
  const record = asObject(value) ?? {}
  const externalId = asText(record.identifier)
  const title = asText(record.title)
  if (externalId === undefined || title === undefined)
    return [rejected('an issue without an `identifier` or a `title`', place, value)]
  const createdAt = asIsoDate(record.createdAt)
  const text = asText(record.description)
  const team = asObject(record.team)
  const fields = {
    title,
    createdAt,
    url: asText(record.url),
    channelName: asText(team?.name),
    channelId: asText(team?.key) ?? asText(team?.id),
  }
  const own: QuoteInput[] = text === undefined ? [] : [{ externalId, ...quoteOf(record, text) }]
  const order = `0${asText(record.updatedAt) ?? ''}`
  const isPart = asObject(asObject(record.comments)?.pageInfo)?.hasNextPage === true
  // A query can ask for the issues in an issue, perhaps only for their ids.
  const inside = nodesOf(record.children).filter(({ identifier, title }) => identifier && title)
  return [
    piece(externalId, order, present(fields), own, place),
    ...nodesOf(record.comments).flatMap((comment) => readComment(comment, externalId, place)),
    ...(isPart ? [skipped('issues whose comments are not all in the file', place)] : []),
    ...inside.flatMap((one) => readIssue(one, place)),
  ]
}

/** Reads a comment, and the answers in it: queries can ask for `children` of comments. */
function readComment(comment: JsonObject, issue: string, place: Place): Found[] {
  const text = asText(comment.body)
  const externalId = asText(comment.id)
  const answers = nodesOf(comment.children).flatMap((one) =>
    readComment({ parentId: externalId, ...one }, issue, place),
  )
  if (text === undefined) return [skipped('comments without text', place), ...answers]
  const replyingTo = asText(asObject(comment.parent)?.id) ?? asText(comment.parentId)
  const quote = { ...quoteOf(comment, text), ...present({ externalId, replyingTo }) }
  // The copy that was edited last comes last, and so replaces the others.
  const edited = asText(comment.editedAt) ?? asText(comment.updatedAt) ?? ''
  const order = `1${quote.createdAt ?? ''}/${externalId ?? ''}/${edited}`
  return [piece(issue, order, {}, [quote], place), ...answers]
}

function quoteOf(record: JsonObject, text: string): QuoteInput {
  const author = [record.user, record.creator, record.botActor, record.externalUser]
    .map(asObject)
    .find(Boolean)
  const speaker = asText(author?.displayName) ?? asText(author?.name)
  return { text, ...present({ speaker, createdAt: asIsoDate(record.createdAt) }) }
}
