// Reads the text that WhatsApp exports of a chat: `_chat.txt` of an iPhone, `WhatsApp Chat with Ada.txt` of Android.
import { basename, dirname } from 'node:path/posix'
import type { Format, FormatOptions, Found, FoundLists, InputFile, Piece, Place, QuoteInput } from '../format.ts'
import { FormatError, orRejected, ownsFolder, rejected, skipped } from '../format.ts'
import { decodeBeginning, readBeginning } from '../read/utf8-chunks.ts'
import { createZonedClock, DAY_CHARACTERS } from '../values/iso-date.ts'
import { present } from '../values/record-fields.ts'
import { type Order, orderOfDates, readDate } from './dates.ts'
import { type Line, linesOf, messageLine } from './lines.ts'

/** WhatsApp writes this mark before its own words, on iPhones. */
const MARK = '\u200E'
const LOOKED_AT = 20
const LONGEST_NAME = 100

/** What Android writes in place of a message that was deleted, in the languages that most people use. */
const DELETED =
  /^(This message was deleted|You deleted this message|Diese Nachricht wurde gelöscht|Du hast diese Nachricht gelöscht|Se eliminó este mensaje|Este mensaje fue eliminado|Eliminaste este mensaje|Ce message a été supprimé|Vous avez supprimé ce message|Esta mensagem foi (?:apagada|eliminada)|Você apagou esta mensagem|Questo messaggio è stato eliminato|Hai eliminato questo messaggio|Данное сообщение удалено|Вы удалили данное сообщение|Dit bericht is verwijderd|U hebt dit bericht verwijderd|Ta wiadomość została usunięta|Bu mesaj silindi|Bu mesajı sildiniz|Pesan ini telah dihapus|Anda menghapus pesan ini)\.?$/

/**
 * An iPhone ends a message by `<attached: 00000012-PHOTO.jpg>`, and names a document before it. Android begins it by
 * `IMG-20240501-WA0001.jpg (file attached)`. Under other names than WhatsApp's, people may have written the brackets.
 */
const ATTACHED =
  /(?:^\u200E?|\s\u200E)<[^<>:]+: ([^<>]+\.\w+)>$|^\u200E?(?:(\S+-WA\d{4}\.\w+) \([^()]+\)|(.+\.\w+) \((?:file attached|Datei angehängt|archivo adjunto|fichier joint|arquivo anexado|file allegato|bestand bijgevoegd|файл добавлен)\))(?:\n|$)/i

/** Reads each day of a chat, in UTC, as a source. Dates are local times. Memory: the largest message. */
export const whatsappFormat: Format = {
  name: 'whatsapp',
  description: 'WhatsApp chats (_chat.txt, or the .txt of Android; with --timezone)',
  options: ['timezone'],
  // Android numbers most files that people sent, and iPhones number all of them.
  owns: ownsFolder({ others: /./, uploads: /^\/?(\d{8}-[^/]*|[^/]*-WA\d{4}\.\w+)$/ }),
  recognises: (file, beginning) => isText(file) && isChat(beginning),
  async *read(files, options) {
    // Among the media may be texts that people sent.
    const isOther = async (file: InputFile) => !isText(file) || (files.length > 1 && !isChat(await readBeginning(file)))
    for (const file of files)
      if (await isOther(file)) yield [skipped('files without messages, such as media', { path: file.path })]
      else yield* orRejected(file, readChat(file, options))
  },
  restore: (record, { chat }, path) => ({
    [typeof chat === 'string' ? `WhatsApp Chat with ${chat}.txt` : path]: record,
  }),
}

function isText({ path }: InputFile): boolean {
  return path.endsWith('.txt')
}

function isChat(beginning: Buffer): boolean {
  const lines = decodeBeginning(beginning).split('\n', LOOKED_AT)
  return lines.some((line) => messageLine(line) !== undefined)
}

async function* readChat(file: InputFile, { timezone }: FormatOptions): FoundLists {
  if (timezone === undefined)
    throw new FormatError(
      'WhatsApp exports local times: pass the time zone of the phone, such as --timezone Europe/Berlin.',
    )
  const clock = createZonedClock(timezone)
  const { order, isAssumed } = await orderOfDates(linesOf(file))
  const reason = `dates such as 5/1/2024 that were read with the ${order === 'MDY' ? 'month' : 'day'} first`
  if (isAssumed) yield [{ kind: 'warning', reason, place: { path: file.path } }]
  let name = nameOf(file.path)
  // A long chat is exported without its first line. Then the folder may have the name.
  const substitute = nameOf(dirname(file.path)) ?? '_chat'
  let open: Line | undefined
  for await (const lines of linesOf(file)) {
    const found: Found[] = []
    for (const line of lines) {
      if (line.date === undefined && open !== undefined) open = { ...open, text: `${open.text}\n${line.text}` }
      else {
        if (open !== undefined) found.push(...readMessage(open, name ?? substitute, order, clock))
        // On an iPhone, the chat itself says first that it is encrypted.
        else if (line.text.startsWith(MARK) && line.speaker !== undefined) name ??= line.speaker
        open = line
      }
    }
    yield found
  }
  if (open !== undefined) yield readMessage(open, name ?? substitute, order, clock)
  if ((name ?? substitute) === '_chat') yield [{ kind: 'warning', reason: NAMELESS, place: { path: file.path } }]
}

const NAMELESS =
  'chats without a name, which become one chat: put each _chat.txt into a folder with its name, or use --id-prefix'

/** Android writes the name of the chat into that of the file, in the language of the phone. */
function nameOf(path: string): string | undefined {
  const prefix = /^(?:WhatsApp[ -]Chat|(?:Chat|Conversa|Discussion)(?: \S+)? WhatsApp) \S+ /
  const name = basename(path, '.txt').replace(prefix, '')
  return ['_chat', '.', ''].includes(name) ? undefined : name.slice(0, LONGEST_NAME)
}

function readMessage(
  { date, speaker, text, place }: Line,
  chat: string,
  order: Order,
  clock: (local: string) => string | undefined,
): Found[] {
  const local = date === undefined ? undefined : readDate(date, order)
  const createdAt = local && clock(local)
  if (createdAt === undefined) {
    const record = date === undefined ? text : `[${date}] ${speaker === undefined ? '' : `${speaker}: `}${text}`
    return [{ ...rejected('a line without a valid date', place, record), context: { chat } }]
  }
  const [tagged, atEnd, numbered, named] = ATTACHED.exec(text) ?? []
  const file = atEnd ?? numbered ?? named
  const isMedia = file === undefined && /^<[^<>]+>$/.test(text)
  if (speaker === undefined) return [skipped('notices by WhatsApp, such as of who joined a chat', place)]
  if (DELETED.test(text)) return [skipped('messages that were deleted', place)]
  if (isMedia) return [skipped('media that were not exported', place)]
  if (file === undefined && text.startsWith(MARK))
    return [skipped('notices by WhatsApp, media that were not exported, and messages that were deleted', place)]
  const caption = tagged === undefined ? text : text.replace(tagged, '').replaceAll(MARK, '').trim()
  const edited = / ?\u200E?<[^<>]+>$/.exec(caption)
  const words = edited && caption.includes(MARK) ? caption.slice(0, edited.index) : caption
  const quote: QuoteInput = { text: words, speaker, createdAt, ...present({ attachments: file ? [file] : [] }) }
  return [toPiece(quote, chat, createdAt, place)]
}

function toPiece(quote: QuoteInput, chat: string, createdAt: string, place: Place): Piece {
  const day = createdAt.slice(0, DAY_CHARACTERS)
  const fields = { title: `${chat}, ${day}`, channelName: chat, createdAt: `${day}T00:00:00.000Z` }
  const externalId = `whatsapp/${chat}/${day}`
  return { kind: 'piece', service: 'custom', externalId, order: createdAt, fields, quotes: [quote], place }
}
