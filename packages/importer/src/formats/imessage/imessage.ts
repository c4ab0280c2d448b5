// Reads the database of Apple's Messages: chat.db on a Mac, or sms.db in an iPhone's backup.
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Format, Found, FoundLists, InputFile } from '../format.ts'
import { FormatError, orRejected, ownsFolder, piecesOf, rejected, skipped } from '../format.ts'
import { fileBeside } from '../read/files-beside.ts'
import { foundIn, readJsonFile } from '../read/json-records.ts'
import { makeTemporaryFolder } from '../read/temporary-folder.ts'
import { dayOfChat } from '../values/day-of-chat.ts'
import { isoDateOf } from '../values/iso-date.ts'
import {
  asNumber,
  asObject,
  asText,
  asTexts,
  type JsonObject,
  present,
} from '../values/record-fields.ts'
import { asName } from '../values/typography.ts'
import { editsIn } from './edits.ts'
import { messagesIn } from './messages.ts'
import { textOfBody } from './typedstream.ts'

const piece = piecesOf('imessage')
/** Matches the name of the database. In a backup, the name of sms.db is the digest of its path. */
const DATABASE = /(^|[-_ /])(chat|sms)\.db$|(^|\/)3d0d7e5fb2ce288813306e4d4636395e047a3d28$/i
/** Matches what Messages keeps beside chat.db. In a backup, the names are digests. */
const BESIDE =
  /^\/?(([^/]*(chat|sms)|prewarm\w*)\.db(-wal|-shm|-journal)?$|[^/]*\.plist$|[0-9a-f]{40}(-wal|-shm)?$|(Archive\/.*\.ichat$|(Caches|CloudKitMetaData|NickNameCache|StickerCache|SyncedPreferences)\/))/
/** The ending of a file with a corrected message: a file in JSON, not a database. */
const RECORD = '.message.json'
const SQLITE = 'SQLite format 3\0'
/** 1000 puts a sticker on a message, 2000 and up add a tapback, 3000 and up remove one. */
const TAPBACK = /^[123]\d{3}$/

/**
 * Reads each UTC day of a chat as a source, from a copy of the database. Keeps a few hundred
 * messages in memory.
 */
export const imessageFormat: Format = {
  name: 'imessage',
  title: 'iMessage',
  description: "iMessage: chat.db of a Mac, sms.db of an iPhone's backup (Node 22.13 or later)",
  sourceIs: 'a day (UTC) of a chat',
  howTo: 'name a copy of the folder ~/Library/Messages of a Mac',
  owns: ownsFolder({ parts: BESIDE, uploads: /^\/?Attachments\// }),
  skipsOthers: true,
  recognises: ({ path }, beginning) =>
    DATABASE.test(path) && beginning.toString('latin1').startsWith(SQLITE),
  async *read(files) {
    for (const file of files)
      if (file.path.endsWith(RECORD))
        yield* foundIn(readJsonFile(file, ['']), ({ value }) =>
          readRow(asObject(value) ?? {}, file.path),
        )
      else if (files.length === 1 || DATABASE.test(file.path))
        yield* orRejected(file, readDatabase(file, files))
      else if (!/-(wal|shm)$/.test(file.path)) yield [fileBeside(file)]
  },
  restore: (record, _, path) => ({ [`${path}${RECORD}`]: record }),
}

async function* readDatabase(file: InputFile, files: readonly InputFile[]): FoundLists {
  const folder = await makeTemporaryFolder()
  try {
    const copy = join(folder, 'chat.db')
    await pipeline(file.open(), createWriteStream(copy))
    // The newest messages may be only in the write-ahead log.
    const log = files.find(({ path }) => path === `${file.path}-wal`)
    if (log !== undefined) await pipeline(log.open(), createWriteStream(`${copy}-wal`))
    for await (const rows of messagesIn(copy))
      yield rows.map((row) =>
        readRow(Object.assign(row, { files: JSON.parse(String(row.files)) }), file.path),
      )
  } catch (error) {
    if (Object(error).code !== 'ERR_SQLITE_ERROR') throw error
    throw new FormatError(
      `${file.path} can't be read as the database of Messages: ${Object(error).message}.`,
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function readRow(row: JsonObject, path: string): Found {
  const place = { path, pointer: `/message/${row.id}` }
  const externalId = asText(row.guid)
  const chat = asText(row.chat)
  const createdAt = isoDateOf(asNumber(row.seconds))
  if (TAPBACK.test(String(row.associated_message_type)))
    return skipped('tapbacks and stickers on messages', place)
  if (Number(row.item_type) !== 0) return skipped('notices, such as of who joined a chat', place)
  if (chat === undefined) return skipped('messages of chats that were deleted', place)
  // Newer systems write the text only into `attributedBody`. U+FFFC stands for a file that is
  // shown.
  const edits = editsIn(row.info)
  const body = (asText(row.text) ?? (textOfBody(row.attributedBody) || edits.text))
    .replaceAll('\uFFFC', '')
    .trim()
  // People may write a subject above the text.
  const text = [asText(row.subject), body].filter(Boolean).join('\n')
  const attachments = asTexts(row.files)
  if (externalId === undefined || createdAt === undefined) {
    const { attributedBody: _body, info: _info, ...record } = row
    return rejected('a message without a guid or a valid date', place, { ...record, text: body })
  }
  // If a part of a message was unsent, the text is what remains.
  const isChanged = edits.hasUnsent || Number(row.date_retracted) + Number(row.date_edited) > 0
  if (isChanged && text === '' && attachments.length === 0)
    return skipped('messages that were unsent', place)
  const speaker = Number(row.is_from_me) === 1 ? 'Me' : asName(row.handle)
  const replyingTo = asText(row.thread_originator_guid)
  const optional = present({ speaker, replyingTo, attachments })
  const day = dayOfChat(chat, asText(row.chat_name) ?? chat, createdAt)
  // The copy that was edited last comes last, and so replaces the others.
  const [edited, id] = [row.date_edited ?? 0, row.id].map((number) =>
    String(number).padStart(20, '0'),
  )
  const order = `${createdAt}/${edited}/${id}`
  const fields = { ...day.fields, channelId: chat }
  return piece(day.externalId, order, fields, [{ externalId, text, createdAt, ...optional }], place)
}
