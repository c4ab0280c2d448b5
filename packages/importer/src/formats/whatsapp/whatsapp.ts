// Reads the text that WhatsApp exports of a chat: `_chat.txt` from an iPhone, or `WhatsApp Chat
// with Ada.txt` from Android.
import { basename, dirname, join } from 'node:path/posix'
import type {
  Format,
  FormatOptions,
  Found,
  FoundLists,
  InputFile,
  Noted,
  QuoteInput,
} from '../format.ts'
import { FormatError, ownsFolder, rejected, skipped } from '../format.ts'
import { LONGEST_RECORD_BYTES } from '../read/bounded-bytes.ts'
import { eachRecognised } from '../read/each-recognised.ts'
import { decodeBeginning } from '../read/utf8-chunks.ts'
import { dayOfChat } from '../values/day-of-chat.ts'
import { createDateReader, type ReadDate } from '../values/written-values.ts'
import {
  looksDated,
  MARK,
  type Message,
  messageLine,
  messagesOf,
  OF_SIGNAL,
  surveyChat,
} from './messages.ts'
import { isInstead, isNotice, withoutEdited } from './notices.ts'

const LOOKED_AT = 20
/**
 * The name of an iPhone's file. In an Android file's name, the chat's name follows these words, in
 * the phone's language.
 */
const UNNAMED = '_chat'
const BEFORE_NAME = /^(?:WhatsApp[ -]Chat|(?:Chat|Conversa|Discussion)(?: \S+)? WhatsApp) \S+ /
/**
 * Matches an attachment: `<attached: 1-PHOTO.jpg>` (iPhone), `IMG-1-WA0001.jpg (file attached)`
 * (Android). People also write brackets.
 */
const ATTACHED =
  /(?:^\u200E?|\s\u200E)<[^<>:]+: ([^<>]+\.\w+)>$|^\u200E?(?:(\S+-WA\d{4}\.\w+) \([^()]+\)|(.+\.\w+) \((?:file attached|Datei angehängt|archivo adjunto|fichier joint|arquivo anexado|file allegato|bestand bijgevoegd|файл добавлен)\))(?:\n|$)/i
/** The name of a document in `menu.pdf • 4 pages document omitted`. */
const LEFT_OUT = /^\u200E?(.{1,255}\.\w+) (?:• )?\u200E[^<>\n]{1,100}$/
/** An iPhone marks each option of a poll, and the word in front of a place's URL. */
const POLL_OR_PLACE = /\n\u200E|^\u200E[^:\n]+: (?:.+: )?https:\/\/\S+$/
const NAMELESS =
  'chats without a name become one: put each _chat.txt into a folder with its name, or use --id-prefix'
const CUT = `lines of more than ${LONGEST_RECORD_BYTES} bytes`
const SEVERAL = 'messages with lines that look like further messages, whose dates can not be read'
const BY_WORDING = 'notices of WhatsApp, told by wording'
const EDITED = / ?\u200E<[^<>]+>$/

/** Reads each UTC day of a chat as a source, with one message in memory. Dates are local times. */
export const whatsappFormat: Format = {
  name: 'whatsapp',
  title: 'WhatsApp',
  description: 'WhatsApp chats (_chat.txt, or the .txt of Android; with --timezone)',
  sourceIs: 'a day (UTC) of a chat',
  howTo:
    'in the chat ⋮, More, Export chat (iPhone: the name of the chat, Export Chat); with --timezone',
  options: ['timezone'],
  // Files that people sent: Android numbers most of them, and iPhones number all:
  // 00000012-Report.csv. `2024…` is a date.
  owns: ownsFolder({ parts: /\.(vcf|was)$/, uploads: /^\/?(0\d{7}-[^/]*|[^/]*-WA\d{4}\.\w+)$/ }),
  ...eachRecognised(isChat, readChat),
  faultOf: async ({ path }, beginning) =>
    linesIn(beginning).some((line) => messageLine(line) !== undefined)
      ? undefined
      : faultOfDates(path),
  restore: (record, { chat }, path) => ({
    [chat === undefined ? path : `WhatsApp Chat with ${chat}.txt`]: record,
  }),
}

function isChat({ path }: InputFile, beginning: Buffer): boolean {
  const lines = linesIn(beginning).slice(0, LOOKED_AT)
  if (!path.endsWith('.txt') || OF_SIGNAL.test(lines[0] ?? '')) return false
  return lines.some((line) => messageLine(line) !== undefined || looksDated(line))
}

const linesIn = (beginning: Buffer) => decodeBeginning(beginning).split(/\r\n?|\n/)

function faultOfDates(path: string): string {
  return `${path}: no line begins with a date in a form or a calendar that is known. Set the phone's language to English, and export the chat again.`
}

/** What is known about a chat before its messages are read. */
interface Chat {
  name: string
  dates: ReadDate
  hasMarks: boolean
  /**
   * Names under which people have written. What follows such a name and a colon is a message, even
   * if it reads like a notice.
   */
  people: Set<string>
}

async function* readChat(file: InputFile, { timezone }: FormatOptions): FoundLists {
  if (timezone === undefined)
    throw new FormatError(
      `${file.path}: pass the time zone of the phone, such as --timezone Europe/Berlin.`,
      ['--timezone ZONE'],
    )
  const { dateFormat, isAssumed, hasMarks, isDated } = await surveyChat(messagesOf(file))
  if (!isDated) throw new FormatError(faultOfDates(file.path))
  const first = dateFormat.startsWith('M') ? 'month' : 'day'
  const reason = `dates such as 5/1/2024 that were read with the ${first} first`
  if (isAssumed) yield [{ kind: 'warning', reason, place: { path: file.path } }]
  const dates = createDateReader({ dateFormat, timezone, isRecent: true })
  const chat: Chat = { name: nameIn(file.path), dates, hasMarks, people: new Set() }
  for await (const messages of messagesOf(file)) {
    // An iPhone's export begins with a message that the chat is encrypted, by a sender with the
    // chat's name. Exports of long chats lack this message.
    if (chat.name === UNNAMED && messages[0]?.place.line === 1)
      chat.name =
        (messages[0].text.startsWith(MARK) && messages[0].speaker) ||
        nameIn(dirname(join(UNNAMED, file.path)))
    yield messages.flatMap((message) => {
      const { isCut, mayBeSeveral, place } = message
      const notes: Noted[] = []
      if (isCut) notes.push({ kind: 'cut', reason: CUT, place })
      if (mayBeSeveral) notes.push({ kind: 'doubtful', reason: SEVERAL, place })
      return [readMessage(message, chat), ...notes]
    })
  }
  if (chat.name === UNNAMED)
    yield [{ kind: 'warning', reason: NAMELESS, place: { path: file.path } }]
}

const nameIn = (path: string) => basename(path, '.txt').replace(BEFORE_NAME, '')

function readMessage(
  { date = '', separator, speaker, head, text, place }: Message,
  chat: Chat,
): Found {
  const createdAt = chat.dates.read(date)
  if (createdAt === undefined)
    return {
      ...rejected('a line without a valid date', place, head + text),
      context: { chat: chat.name },
    }
  if (speaker === undefined)
    return skipped('notices by WhatsApp, such as of who joined a chat', place)
  // In a joined file, other chats may come from Android.
  const isMarked = chat.hasMarks && separator === ']'
  if (!isMarked && isByWording(speaker, text, chat)) return skipped(BY_WORDING, place)
  const leftOut = head.startsWith(MARK) ? LEFT_OUT.exec(text) : null
  const [attached = '', ofIphone, numbered = ofIphone, file = numbered] =
    leftOut ?? ATTACHED.exec(text) ?? []
  if (attached === '' && /^<[^<>]+>$/.test(text))
    return skipped('media that were not exported', place)
  if (attached === '' && text.startsWith(MARK) && !POLL_OR_PLACE.test(text))
    return skipped(
      'notices by WhatsApp, media that were not exported, and messages that were deleted',
      place,
    )
  const rest = withoutEdited(text.replace(attached, '').replace(EDITED, ''))
  const words = attached === '' && !rest.startsWith(MARK) ? rest : rest.replaceAll(MARK, '').trim()
  const quote: QuoteInput = {
    text: words,
    speaker,
    createdAt,
    ...(file && { attachments: [file] }),
  }
  const day = dayOfChat(`whatsapp/${chat.name}`, chat.name, createdAt)
  return { kind: 'piece', service: 'custom', ...day, order: createdAt, quotes: [quote], place }
}

function isByWording(speaker: string, text: string, { people }: Chat): boolean {
  if (isInstead(text)) return true
  if (!people.has(speaker) && isNotice(speaker, text)) return true
  people.add(speaker)
  return false
}
