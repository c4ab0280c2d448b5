// Reads an export of Telegram Desktop in JSON, which has one chat, or all chats of an account.
import { basename } from 'node:path/posix'
import type { Format, FormatOptions, Found, FoundLists, InputFile, QuoteInput } from '../format.ts'
import { FormatError, ownsFolder, piecesOf, rejected, skipped, withSkipped } from '../format.ts'
import { eachRecognised } from '../read/each-recognised.ts'
import { jsonShape } from '../read/json-beginning.ts'
import { fieldsBehind, foundIn, type JsonRecord, readJsonFile } from '../read/json-records.ts'
import { decodeBeginning } from '../read/utf8-chunks.ts'
import { dayOfChat } from '../values/day-of-chat.ts'
import { createZonedClock, isoDateIn, isoDateOf } from '../values/iso-date.ts'
import {
  asArray,
  asId,
  asNumber,
  asObject,
  asObjects,
  asText,
  asTexts,
  type JsonObject,
  present,
} from '../values/record-fields.ts'
import { asName } from '../values/typography.ts'

const piece = piecesOf('telegram')
/** Where a file has its chats: the root is a chat, or it has lists of an account's chats. */
const CHATS = ['', '/chats/list/*', '/left_chats/list/*']

const CHAT_FIELDS = ['id', 'name', 'type']
const CHOSEN = CHATS.flatMap((chat) =>
  [...CHAT_FIELDS, 'messages/*'].map((name) => `${chat}/${name}`),
)

/** What an export has besides result.json. People may have sent files of any format. */
const BESIDE =
  /^\/?(chats\/chat_\d+|contacts|css|files|images|js|lists|photos|profile_pictures|round_video_messages|stickers|stories|video_files|voice_messages)\/|^\/?(messages\d*|export_results)\.html$/

/**
 * Reads each UTC day of a chat as a source. Keeps only the largest message in memory.
 * @see https://core.telegram.org/import-export
 */
export const telegramFormat: Format = {
  name: 'telegram',
  title: 'Telegram',
  description: 'Telegram chats (result.json of Telegram Desktop)',
  sourceIs: 'a day (UTC) of a chat',
  howTo: 'Telegram Desktop: in the chat ⋮, Export chat history, Format: Machine-readable JSON',
  options: ['timezone'],
  owns: ownsFolder({ uploads: BESIDE }),
  ...eachRecognised(isTelegram, readFile),
  restore: (record, chat, path) => ({
    [path]: `{"messages":[${record}],${JSON.stringify(chat).slice(1)}`,
  }),
}

const OF_ACCOUNT = [
  'personal_information',
  'profile_pictures',
  'stories',
  'contacts',
  'frequent_contacts',
  'sessions',
]
/**
 * Matches the beginning of a single chat. Skips whole strings, because a chat's name may contain
 * brackets, and quotation marks that are escaped.
 */
const ONE_CHAT =
  /^\s*\{(?:[^"{[]|"(?:[^"\\]|\\.)*")*?"type"\s*:\s*"(personal_chat|bot_chat|saved_messages|replies|verification_codes|(private|public)_(group|supergroup|channel))"/s

function isTelegram({ path }: InputFile, beginning: Buffer): boolean {
  const { members } = jsonShape(beginning)
  const isAccount =
    members.has('about') && ['chats', 'left_chats', ...OF_ACCOUNT].some((name) => members.has(name))
  const isChat = ['messages[].date', 'messages[].type', 'type', 'id'].every((name) =>
    members.has(name),
  )
  return (
    path.endsWith('.json') && (isAccount || isChat || ONE_CHAT.test(decodeBeginning(beginning)))
  )
}

const ABOVE_NEGATIVE_IDS = 2 ** 33
const FORWARDED = 'names of whom messages were forwarded from'

type Chat = Partial<Record<'id' | 'name' | 'type', string | undefined>>

type ToDate = (message: JsonObject) => string | undefined

async function* readFile(file: InputFile, options: FormatOptions): FoundLists {
  const toDate = createDateReader(options)
  let chat: Chat = toChat(await fieldsBehind(file, 'messages', CHAT_FIELDS))
  let chatPointer = ''
  const toFound = (record: JsonRecord) => {
    const isMessage = record.path.endsWith('/messages/*')
    const pointer = chatOf(record.place.pointer ?? '', isMessage)
    if (pointer !== chatPointer) chat = {}
    chatPointer = pointer
    if (isMessage) return readMessage(record, chat, toDate)
    chat = {
      ...chat,
      ...toChat({ [record.path.slice(record.path.lastIndexOf('/') + 1)]: record.value }),
    }
    return []
  }
  yield* foundIn(readJsonFile(file, CHOSEN), toFound, () => chat)
}

function toChat(fields: JsonObject): Chat {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, asId(value)]))
}

function chatOf(pointer: string, isMessage: boolean): string {
  const field = pointer.lastIndexOf('/')
  return pointer.slice(0, isMessage ? pointer.lastIndexOf('/', field - 1) : field)
}

function readMessage({ value, place }: JsonRecord, chat: Chat, toDate: ToDate): Found | Found[] {
  const record = asObject(value) ?? {}
  // The notice of a gift has words of its giver.
  const { gift_text: text = '', actor: from, actor_id: from_id } = record
  const message =
    textOf(text).trim() === '' ? record : { ...record, type: 'message', text, from, from_id }
  const id = asId(message.id)
  if (!chat.id || !chat.type)
    return rejected('the file names no chat, or not its type', place, value)
  if (message.type === 'service')
    return skipped('notices by Telegram, such as of who joined a chat', place)
  if (message.type === 'unsupported')
    return skipped('messages that this version of Telegram could not export', place)
  if (!id) return rejected('a message without an `id`', place, value)
  const createdAt = toDate(message)
  if (!createdAt)
    return rejected('a message without a valid `date_unixtime` or `date`', place, value)
  // Messages from before their group became a supergroup have negative ids. The last copy replaces
  // the others: the one that was edited last.
  const number = String(Number(id) + ABOVE_NEGATIVE_IDS).padStart(20, '0')
  const order = `${createdAt}/${number}/${editedAt(message)}`
  const channelId = idOfChat(chat.id, chat.type)
  const { externalId, fields } = dayOfChat(channelId, chat.name ?? channelId, createdAt)
  const quotes = [toQuote(message, id, createdAt, chat)]
  const found = piece(externalId, order, { ...fields, channelId }, quotes, place)
  const buttons = asArray(message.inline_bot_buttons).map(() => 'rows of buttons')
  const leftOut = asText(message.forwarded_from) ? [...buttons, FORWARDED] : buttons
  return withSkipped(found, leftOut, place)
}

/** Returns a time in any zone, because only copies of the same message are compared. */
function editedAt({ edited_unixtime, edited }: JsonObject): string {
  return asId(edited_unixtime) ?? asText(edited) ?? ''
}

/**
 * Returns the id of a chat. It begins with the chat's kind, because users, groups and channels are
 * numbered separately. Exports write `user1` for a sender, but 1 for a chat.
 */
function idOfChat(id: string, type: string): string {
  if (/supergroup|channel/.test(type)) return `channel${id}`
  return `${type.endsWith('group') ? 'group' : 'user'}${id}`
}

function toQuote(message: JsonObject, id: string, createdAt: string, chat: Chat): QuoteInput {
  // `author` signs what was sent in the name of a channel or a group.
  const speaker =
    asName(message.author) ?? asName(message.from) ?? asText(message.from_id) ?? asName(chat.name)
  // A reply with `reply_to_peer_id` answers a message of another chat, whose id means nothing in
  // this chat.
  const replyingTo =
    asId(message.reply_to_peer_id) === undefined ? asId(message.reply_to_message_id) : undefined
  const attachments = filesOf(message)
  const own = textOf(message.text ?? message.text_entities)
  const hasMedia = MEDIA_WITH_WORDS.some((name) => message[name] !== undefined)
  const lines = hasMedia ? linesOfMedia(message).filter((line) => line.trim() !== '') : []
  const text =
    lines.length === 0 ? own : [own, ...lines].filter((line) => line.trim() !== '').join('\n')
  return { externalId: id, text, createdAt, ...present({ speaker, replyingTo, attachments }) }
}

/** A text is a string, or a list of strings and marked parts. A `text_link` has an address. */
function textOf(text: unknown): string {
  if (typeof text === 'string') return text
  const { type, href, text: inner } = asObject(text) ?? {}
  const shown = asArray(inner === undefined ? text : [inner].flat())
    .map(textOf)
    .join('')
  const address = type === 'text_link' ? asText(href) : undefined
  return address && address !== shown ? `${shown} (${address})` : shown
}

const MEDIA_WITH_WORDS = [
  'rich_message',
  'poll',
  'todo_list',
  'place_name',
  'game_title',
  'invoice_information',
  'contact_information',
]

/** Returns the words of what was sent besides the text: see MEDIA_WITH_WORDS. */
function linesOfMedia(message: JsonObject): string[] {
  const poll = asObject(message.poll)
  const tasks = asObject(message.todo_list)
  const invoice = asObject(message.invoice_information)
  const items = [...asObjects(poll?.answers), ...asObjects(tasks?.items ?? tasks?.answers)]
  const { first_name, last_name, phone_number } = asObject(message.contact_information) ?? {}
  return [
    ...linesOfBlocks(message.rich_message),
    ...[poll?.question, tasks?.title].map(textOf),
    ...items.map(({ text }) => textOf(text)).flatMap((item) => (item ? `• ${item}` : [])),
    ...asTexts([message.place_name, message.address]),
    ...asTexts([message.game_title, message.game_description]),
    ...asTexts([invoice?.title, invoice?.description]),
    asTexts([first_name, last_name, phone_number]).join(' '),
  ]
}

/** A rich message has blocks instead of a text. Blocks may have lists and blocks in them. */
function linesOfBlocks(value: unknown): string[] {
  if (Array.isArray(value))
    return value.flatMap((one) => (asText(one) ? [String(one)] : linesOfBlocks(one)))
  const { title, summary, text, caption, ...inner } = asObject(value) ?? {}
  const lists = Object.values(inner).filter((one) => typeof one === 'object')
  return [...[title, summary, text, caption].map(textOf), ...linesOfBlocks(lists)]
}

/** A file that was not exported is named by its kind: `sticker 😀`, `voice_message`, `photo`. */
function filesOf(message: JsonObject): string[] {
  const name = asText(message.file_name) ?? fileNameOf(message.file) ?? fileNameOf(message.photo)
  const sticker = asText(message.sticker_emoji)
  if (name) return [name]
  if (message.media_type !== undefined)
    return [`${message.media_type}${sticker ? ` ${sticker}` : ''}`]
  const { photo, file, location_information: location } = message
  return (photo ?? file ?? location) ? Object.keys(present({ photo, file, location })) : []
}

/** Instead of a path, there may be a sentence in brackets that says why the file is missing. */
function fileNameOf(path: unknown): string | undefined {
  const text = asText(path)
  return text && !text.startsWith('(') ? basename(text) : undefined
}

/** Reads dates. In old exports, without `date_unixtime`, they are local to the writing computer. */
function createDateReader(options: FormatOptions): ToDate {
  const clock = options.timezone === undefined ? undefined : createZonedClock(options.timezone)
  let hasUnixTimes = false
  return (message) => {
    const unix = isoDateOf(asNumber(message.date_unixtime))
    hasUnixTimes ||= message.date_unixtime !== undefined
    if (unix) return unix
    const date = asText(message.date)
    if (!date) return undefined
    // Other programs that write this format add the offset.
    if (/(Z|[+-]\d{2}:\d{2})$/.test(date)) return isoDateIn(date)
    if (clock) return clock(date)
    // Other messages have `date_unixtime`, so only this message is at fault, and not an old version
    // of Telegram.
    if (hasUnixTimes) return undefined
    throw new FormatError(
      'This export has dates in local time only: pass the time zone of the computer that wrote it, such as --timezone Europe/Berlin.',
      ['--timezone ZONE'],
    )
  }
}
