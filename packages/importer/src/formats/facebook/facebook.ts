// Reads the JSON that Facebook offers under "Download your information": messages, posts and
// comments.
import { isUtf8 } from 'node:buffer'
import { basename } from 'node:path/posix'
import { isRecord } from '@sluice/contract'
import type { Format, Found, FoundLists, InputFile, Place } from '../format.ts'
import { eachFile, ownsFolder, piecesOf, rejected, skipped } from '../format.ts'
import { fileBeside } from '../read/files-beside.ts'
import { jsonShape } from '../read/json-beginning.ts'
import { fieldsBehind, foundIn, readJsonFile, recordsAndLists } from '../read/json-records.ts'
import { readBeginning } from '../read/utf8-chunks.ts'
import { dayOfChat } from '../values/day-of-chat.ts'
import { madeId } from '../values/digest.ts'
import { isoDateOf } from '../values/iso-date.ts'
import {
  asNumber,
  asObject,
  asObjects,
  asText,
  asTexts,
  firstLine,
  type JsonObject,
  present,
} from '../values/record-fields.ts'
import { asName } from '../values/typography.ts'

const piece = piecesOf('facebook')
const LISTS = [
  'status_updates',
  'comments',
  'comments_v2',
  'group_posts',
  'group_posts_v2',
  'group_comments_v2',
]
/** Pages that say what a download has. */
const PAGES = /^(your_\w+_activity\/)?(no-data\.txt|start_here\.html)$/
/** The folders of a download, in old and new versions, and what lies beside the folders of chats. */
const FOLDERS =
  /(^|\/)((about_you|activity_messages|ads|apps_and_websites|archive|bug_bounty|calls|campus|comments|connections|content|events|facebook_|feed|follow|friends|fundraisers|groups|interactions|journalist|likes|live_|location|logged_|marketplace|media|music|navigation|news|notifications|other_|pages|payment|personal_information|photos_|polls|posts|preferences|privacy|profile|reels|reviews|rooms|saved_|search|security_|settings|shop|short_videos|spark|stories|story_|support|trash|voice_|volunteering|your_(?!\w+_activity\/))\w*\/|messages\/(autofill|chat|communit|encrypted|messaging|messenger|secret|support|your)_[^/]*$)/
/** Members that only Facebook and Instagram write. */
const OWN_MEMBER = /(^|\.)(label_values|string_(map|list)_data|fbid)$/
/** Members with words of people in files of other programs, and in none of Facebook's but chats. */
const OTHERS_WORDS = /(^|\.)(body|content|message)$/
/** The path of a chat or of a list of posts within a download. */
const WITHIN = /(?<![^/])(your_\w+_activity\/)?(messages\/.*|([^/]+\/)?[^/]*)$/s
/** The types of messages whose text is Facebook's. Newer downloads only mark calls. */
const NOTICES = /^(Call|Subscribe|Unsubscribe)$/
/** Lists of files. A sticker is a single file. */
const FILES = ['photos', 'videos', 'files', 'audio_files', 'gifs', 'media', 'sticker']

const NO_CHAT =
  'the file does not name its chat: add "thread_path": "inbox/NAME_1" before its messages, with a number of its own for each chat'

/** Reads each UTC day of a chat, each post and each comment as a source. */
export const facebookFormat: Format = {
  name: 'facebook',
  title: 'Facebook',
  description: 'Facebook: "Download your information" as JSON',
  sourceIs: 'a day (UTC) of a chat; a post; a comment',
  howTo: 'Accounts Center, Your information and permissions, Export your information, as JSON',
  owns: ownsFolder({
    within: WITHIN,
    parts: PAGES,
    uploads: /^(your_\w+_activity\/)?messages\/.*\/files\//,
  }),
  wrote,
  skipsOthers: true,
  recognises: ({ path }, beginning) => path.endsWith('.json') && kindOf(beginning) !== undefined,
  read: eachFile(async function* (file) {
    const kind = file.path.endsWith('.json') ? kindOf(await readBeginning(file)) : undefined
    if (kind === 'chat') yield* readChat(file)
    else if (kind === 'posts')
      yield* foundIn(readJsonFile(file, recordsAndLists(...LISTS)), readPost)
    else yield [fileBeside(file, 'data of Facebook other than chats, posts and comments')]
  }),
  restore: (record, chat, path) => {
    if (Object.keys(chat).length === 0) return { [path]: `[${record}]` }
    const [fields, participants] = [JSON.stringify(chat).slice(1), JSON.stringify([{ name: 'x' }])]
    return { [path]: `{"participants":${participants},"messages":[${record}],${fields}` }
  },
}

/**
 * Recognises the other files of a download by their content, because people keep files of their own
 * beside them. The first member of a newer file is a list such as `friends_v2`. An older file shows
 * only by its folder that its records, which have timestamps, or its settings are Facebook's.
 */
function wrote(beginning: Buffer, path: string): boolean {
  const { root, members } = jsonShape(beginning)
  const names = [...members]
  if (/^\w+_v\d$/.test(names[0] ?? '') || names.some((name) => OWN_MEMBER.test(name))) return true
  if ((root !== '{' && root !== '[') || !path.endsWith('.json') || !FOLDERS.test(path)) return false
  const hasRecords = names.some((name) => name.includes('[].'))
  const isDated = names.some((name) => /(^|[._])timestamp$/.test(name))
  return (isDated || !hasRecords) && !names.some((name) => OTHERS_WORDS.test(name))
}

function kindOf(beginning: Buffer): 'chat' | 'posts' | undefined {
  const { members } = jsonShape(beginning)
  const names = ['participants[].name', 'messages[].sender_name', 'messages[].senderName']
  if (members.has('messages') && names.some((name) => members.has(name))) return 'chat'
  const isOfPosts = ['[].', ...LISTS.map((list) => `${list}[].`)].some(
    (at) =>
      members.has(`${at}timestamp`) &&
      (members.has(`${at}data[].post`) || members.has(`${at}data[].comment`)),
  )
  return isOfPosts ? 'posts' : undefined
}

const CHAT_FIELDS = ['title', 'thread_path', 'threadName']

async function* readChat(file: InputFile): FoundLists {
  const chat: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(await fieldsBehind(file, 'messages', CHAT_FIELDS)))
    chat[name] = decoded(asText(value))
  yield* foundIn(
    readJsonFile(file, ['/messages/*']),
    ({ value, place }) => readMessage(asMessage(decoded(value)), chat, value, place),
    () => chat,
  )
}

/** A download of an encrypted chat has other names, and its texts are not escaped. */
function asMessage(value: unknown): JsonObject {
  const { senderName, timestamp, text, isUnsent, ...message } = asObject(value) ?? {}
  return {
    sender_name: senderName,
    timestamp_ms: timestamp,
    content: text,
    is_unsent: isUnsent,
    ...message,
  }
}

/** A message has no id, so its moment (to a millisecond) and a digest identify it. */
function readMessage(message: JsonObject, chat: JsonObject, value: unknown, place: Place): Found {
  const createdAt = isoDateOf(asNumber(message.timestamp_ms))
  // The number at the end stays the same if the name in front of it changes, or if the chat moves
  // to another folder.
  const folder = asText(chat.thread_path)?.replace(/^.*\//, '')
  const channelId = asText(chat.threadName) ?? folder?.replace(/^.*_(\d+)$/, '$1')
  if (channelId === undefined) return rejected(NO_CHAT, place, value)
  if (createdAt === undefined)
    return rejected('a message without a valid `timestamp_ms`', place, value)
  if (message.call_duration !== undefined || NOTICES.test(String(message.type)))
    return skipped('notices by Facebook, such as of calls', place)
  if (message.is_unsent === true) return skipped('messages that were unsent', place)
  const { share_text, link } = asObject(message.share) ?? {}
  const content = asText(message.content) ?? ''
  const shared = [asText(share_text), asText(link)].filter(
    (line) => line && !content.includes(line),
  )
  const text = [content, ...shared].filter(Boolean).join('\n')
  const attachments = namesOf(asObjects(FILES.flatMap((kind) => message[kind] ?? [])))
  const speaker = asName(message.sender_name)
  const externalId = madeId(`${message.timestamp_ms}`, `${speaker}\0${text}\0${attachments}`)
  const name = asText(chat.title) ?? channelId.replace(/_\d+$/, '')
  const day = dayOfChat(channelId, name, createdAt)
  const quote = { externalId, text, createdAt, ...present({ speaker, attachments }) }
  return piece(day.externalId, createdAt, { ...day.fields, channelId }, [quote], place)
}

/**
 * Reads a post or a comment of the account. A comment does not name its post. Neither has an id,
 * and their moments are exact only to a second, so the text is part of the id. The photos of an
 * album are posts in the same second without a text, and become one source.
 */
function readPost({ value, place }: { value: unknown; place: Place }): Found {
  const record = asObject(decoded(value)) ?? {}
  const createdAt = isoDateOf(asNumber(record.timestamp))
  const data = asObjects(record.data)
  const comment = data.map((one) => asObject(one.comment)).find(Boolean)
  if (createdAt === undefined) return rejected('a post without a valid `timestamp`', place, value)
  const shared = asObjects(record.attachments).flatMap((one) => asObjects(one.data))
  const media = shared.map((one) => asObject(one.media) ?? {})
  const own = asTexts([comment?.comment, ...data.map(({ post }) => post)])
  const more = shared.flatMap(wordsOf).filter((one) => !own.includes(one))
  const text = [...own, ...more].join('\n')
  const attachments = namesOf(media)
  const happened = asText(record.title)
  if (text === '' && attachments.length === 0) return skipped('posts without text and files', place)
  const moment = `${comment ? 'comment' : 'post'}/${record.timestamp}`
  const id = madeId(moment, [...(text ? [text] : []), ...attachments].join('\0'))
  const externalId = text === '' ? moment : id
  const title = (comment ? happened : asText(firstLine(text))) ?? happened ?? moment
  const group = asText(comment?.group)
  const fields = { title, createdAt, ...present({ description: happened, channelName: group }) }
  const speaker = asName(comment?.author)
  const quote = { externalId: id, text, createdAt, ...present({ speaker, attachments }) }
  return piece(externalId, '', fields, [quote], place)
}

function namesOf(files: readonly JsonObject[]): string[] {
  return asTexts(files.map(({ uri }) => uri)).map((uri) => basename(uri))
}

/** Returns the name or text, and the words of a link, a place, an event, a poll and so on. */
function wordsOf({ media, ...one }: JsonObject): string[] {
  const { description } = asObject(media) ?? {}
  const parts: readonly JsonObject[] = [one, ...asObjects(Object.values(one))]
  const words = parts.flatMap((part) => [
    ...[part.name, part.title, part.question, part.text, part.url, part.address, part.description],
    ...asObjects(part.options).map(({ option }) => option),
  ])
  return asTexts([...words, description])
}

/**
 * Decodes the texts of a value, including those in lists and objects: Facebook escapes each byte of
 * a UTF-8 text as if it were a character, `\u00c3\u00a9` for é.
 */
function decoded(value: unknown): unknown {
  if (typeof value === 'string') return decodedText(value)
  if (Array.isArray(value)) return value.map(decoded)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, decoded(one)]))
}

/** Matches a mention of a person, by an id and a name: `@[100001:2048:Ada]`. */
const MENTION = /@\[\d{1,20}:\d{1,20}:([^\]\n]{1,100})\]/g

function decodedText(text: string): string {
  const plain = unescaped(text)
  return plain.includes('@[') ? plain.replace(MENTION, '$1') : plain
}

function unescaped(text: string): string {
  if (!/[\x80-\xff]/.test(text) || /[^\0-\xff]/.test(text)) return text
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : text
}
