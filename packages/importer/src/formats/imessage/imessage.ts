// Reads the database of Apple's Messages: chat.db of a Mac, or sms.db of an iPhone's backup.
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Format, Found, FoundLists, InputFile, Piece, Place, QuoteInput } from '../format.ts'
import { FormatError, orRejected, ownsFolder, rejected, skipped } from '../format.ts'
import { DAY_CHARACTERS, isoDateOf } from '../values/iso-date.ts'
import { asNumber, asText, type JsonObject, present } from '../values/record-fields.ts'
import { openMessages } from './messages.ts'
import { textOfBody } from './typedstream.ts'

/** The name of sms.db in a backup is the digest of its path. */
const DATABASE = /^(.*[-_ ])?(chat|sms)\.db$|^3d0d7e5fb2ce288813306e4d4636395e047a3d28$/i
const SQLITE = 'SQLite format 3\0'
const ROWS_TOGETHER = 500
/** 1000 puts a sticker on a message, 2000 and above add a tapback, 3000 and above remove one. */
const TAPBACKS = { from: 1_000, to: 4_000 }

/** Reads each UTC day of a chat as a source. Memory: some hundred messages. The database is copied, and stays as it is. */
export const imessageFormat: Format = {
  name: 'imessage',
  description: "iMessage: chat.db of a Mac, sms.db of an iPhone's backup (Node 22.13 or later)",
  owns: ownsFolder({ others: /./, uploads: /^\/?Attachments\// }),
  recognises: (file, beginning) => isDatabase(file) && beginning.toString('latin1').startsWith(SQLITE),
  async *read(files) {
    const databases = files.some(isDatabase) ? files.filter(isDatabase) : files.slice(0, 1)
    for (const file of databases) yield* orRejected(file, readDatabase(file, files))
    const parts = new Set(databases.flatMap(({ path }) => [path, `${path}-wal`, `${path}-shm`]))
    for (const { path } of files) if (!parts.has(path)) yield [skipped('files beside the database', { path })]
  },
}

function isDatabase({ path }: InputFile): boolean {
  return DATABASE.test(basename(path))
}

async function* readDatabase(file: InputFile, files: readonly InputFile[]): FoundLists {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-imessage-'))
  try {
    const copy = join(folder, 'chat.db')
    await pipeline(file.open(), createWriteStream(copy))
    // The newest messages may stand in the write-ahead log only.
    const log = files.find(({ path }) => path === `${file.path}-wal`)
    if (log !== undefined) await pipeline(log.open(), createWriteStream(`${copy}-wal`))
    using messages = await openMessages(copy)
    yield* readRows(messages, file.path)
  } catch (error) {
    if (Object(error).code !== 'ERR_SQLITE_ERROR') throw error
    throw new FormatError(`${file.path} can't be read as the database of Messages: ${Object(error).message}.`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function* readRows(messages: Awaited<ReturnType<typeof openMessages>>, path: string): FoundLists {
  let found: Found[] = []
  for (const row of messages.rows()) {
    found.push(readRow(row, messages.filesOf(row), { path, pointer: `/message/${row.id}` }))
    if (found.length < ROWS_TOGETHER) continue
    yield found
    found = []
  }
  yield found
}

function readRow(row: JsonObject, files: readonly string[], place: Place): Found {
  const { guid, chat, seconds, item_type, associated_type, date_edited, date_retracted } = row
  const externalId = asText(guid)
  const channelId = asText(chat)
  const createdAt = isoDateOf(asNumber(seconds))
  const associated = Number(associated_type)
  if (associated >= TAPBACKS.from && associated < TAPBACKS.to)
    return skipped('tapbacks and stickers on messages', place)
  if (Number(item_type) !== 0) return skipped('notices, such as of who joined a chat', place)
  if (channelId === undefined) return skipped('messages of chats that were deleted', place)
  const { attributedBody, ...shown } = row
  if (externalId === undefined || createdAt === undefined)
    return rejected('a message without a guid or a valid date', place, shown)
  const text = textOf(row)
  const isEmpty = text === '' && files.length === 0
  // Of a message that was unsent in part, the rest is its text.
  if (isEmpty && Number(date_retracted ?? 0) + Number(date_edited ?? 0) > 0)
    return skipped('messages that were unsent', place)
  const speaker = Number(row.is_from_me) === 1 ? 'Me' : asText(row.handle)
  const fields = { speaker, replyingTo: asText(row.reply_to), attachments: files }
  return toPiece({ externalId, text, createdAt, ...present(fields) }, row, channelId, createdAt, place)
}

/** Newer systems write the text into `attributedBody` only. U+FFFC stands where a file is shown. */
function textOf({ text, attributedBody }: JsonObject): string {
  const own = asText(text) ?? (attributedBody instanceof Uint8Array ? textOfBody(attributedBody) : undefined)
  return (own ?? '').replaceAll('\uFFFC', '').trim()
}

function toPiece(quote: QuoteInput, row: JsonObject, channelId: string, createdAt: string, place: Place): Piece {
  const day = createdAt.slice(0, DAY_CHARACTERS)
  const name = asText(row.chat_name) ?? channelId
  const fields = { title: `${name}, ${day}`, channelName: name, channelId, createdAt: `${day}T00:00:00.000Z` }
  // Of two copies, the one that was edited last comes last and so replaces the other.
  const [id, edited] = [row.id, row.date_edited ?? 0].map((number) => String(number).padStart(20, '0'))
  const order = `${createdAt}/${id}/${edited}`
  return {
    kind: 'piece',
    service: 'imessage',
    externalId: `${channelId}/${day}`,
    order,
    fields,
    quotes: [quote],
    place,
  }
}
