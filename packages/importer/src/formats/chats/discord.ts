// Reads the JSON that DiscordChatExporter writes, in old and new versions: a file for each channel
// or thread, or for each part of one. Also reads the messages of Discord's data package.
import { basename } from 'node:path/posix'
import type { Format, Found, FoundLists, InputFile, QuoteInput } from '../format.ts'
import { orRejected, piecesOf, rejected, rejectedFile, skipped, withSkipped } from '../format.ts'
import { fileBeside } from '../read/files-beside.ts'
import { type JsonShape, jsonShape } from '../read/json-beginning.ts'
import { foundIn, type JsonRecord, readJsonFile } from '../read/json-records.ts'
import { readBeginning } from '../read/utf8-chunks.ts'
import { dayOfChat } from '../values/day-of-chat.ts'
import { isoDateIn } from '../values/iso-date.ts'
import {
  asId,
  asObject,
  asObjects,
  asText,
  asTexts,
  type JsonObject,
  present,
} from '../values/record-fields.ts'
import { asName } from '../values/typography.ts'
import {
  channelOf,
  isPackaged,
  OWN_ONLY,
  ownsPackage,
  readNames,
  readPackaged,
} from './discord-package.ts'

const piece = piecesOf('discord')

/**
 * Reads each thread as a source. Any other channel has no end, so each of its UTC days is a source.
 * Keeps only the largest message in memory. The JSON has no specification: see
 * https://github.com/Tyrrrz/DiscordChatExporter.
 */
export const discordFormat: Format = {
  name: 'discord',
  title: 'Discord',
  description: 'Discord: JSON of DiscordChatExporter, or the data package',
  sourceIs: 'a thread; a day (UTC) of any other channel',
  howTo:
    'DiscordChatExporter, with the format JSON (or, of your own messages alone: Privacy, Request Data)',
  owns: (files, own) => {
    const isOfPackage = ownsPackage(files, own)
    // DiscordChatExporter puts the files that people sent into such a folder.
    const isOfExport = (path: string) => own.has(/^(.*)_Files\//.exec(path)?.[1] ?? path)
    return (path, isRecognised) => isOfExport(path) || isOfPackage(path, isRecognised)
  },
  skipsOthers: true,
  recognises: (file, beginning) => isExported(file, beginning) || isPackaged(beginning),
  async *read(files) {
    const names = await readNames(files)
    for (const file of files) yield* orRejected(file, readFile(file, files.length === 1, names))
  },
  restore: (record, { guild = {}, channel = {} }, path) => {
    // A rejected row of a CSV file is not JSON. It needs no channel, which the path names.
    if (!record.startsWith('{')) return { [path]: record }
    const [server, place] = [JSON.stringify(guild), JSON.stringify(channel)]
    return { [path]: `{"guild":${server},"channel":${place},"messages":[${record}]}` }
  },
}

function isExported({ path }: InputFile, beginning: Buffer): boolean {
  return path.endsWith('.json') && isDiscord(jsonShape(beginning))
}

const NO_CHANNEL =
  "The file is of Discord's data package: import the package whole, because others of its files name the channel."

async function* readFile(
  file: InputFile,
  isAlone: boolean,
  names: Awaited<ReturnType<typeof readNames>>,
): FoundLists {
  const { path } = file
  const beginning =
    isAlone || /\.(json|csv)$/.test(path) ? await readBeginning(file) : Buffer.alloc(0)
  if (isPackaged(beginning)) {
    const { guild, channel, author } = channelOf(path, names)
    const known = toChannel(channel, guild)
    if (!known) return yield [rejectedFile(file, NO_CHANNEL)]
    yield [{ kind: 'warning', reason: OWN_ONLY, place: { path } }]
    const toFound = (record: JsonRecord) => readMessage(record, known, '')
    yield* foundIn(readPackaged(file, author), toFound, () => ({ guild, channel }))
  } else if (isAlone || isExported(file, beginning)) yield* readChannel(file)
  else yield [fileBeside(file, 'uploads, and data of Discord other than messages')]
}

/**
 * The exporter writes the server (`guild`) first. Other programs may have sorted the members by
 * name.
 */
function isDiscord({ root, members }: JsonShape): boolean {
  const [first] = members
  return root === '{' && (first === 'guild' || (members.has('guild') && members.has('channel')))
}

const CHOSEN = ['/guild', '/channel', '/exportedAt', '/messages/*']

/** Versions of the exporter that did not know a kind wrote its number. */
const NOTICES =
  /^(RecipientAdd|RecipientRemove|Call|ChannelNameChange|ChannelIconChange|ChannelPinnedMessage|GuildMemberJoin|ThreadCreated|[1-9]|1[0-24-8]|2[125-9]|3\d|4[0-6])$/
const THREAD = /thread$|^1[012]$/i
const DIRECT = /^(?:(?:GROUP_)?DM|[13])$/
/** Ids of Discord count the milliseconds since this moment, above 22 other bits. */
const EPOCH_MS = 1_420_070_400_000n

type Channel = NonNullable<ReturnType<typeof toChannel>>

async function* readChannel(file: InputFile): AsyncGenerator<readonly Found[]> {
  let guild: JsonObject = {}
  let channel: JsonObject = {}
  let known: Channel | undefined
  let exportedAt = ''
  const toFound = (record: JsonRecord) => {
    if (record.path === '/messages/*') return readMessage(record, known, exportedAt)
    if (record.path === '/exportedAt') exportedAt = isoDateIn(asText(record.value)) ?? ''
    else if (record.path === '/guild') guild = asObject(record.value) ?? {}
    else channel = asObject(record.value) ?? {}
    known = toChannel(channel, guild)
    return []
  }
  yield* foundIn(readJsonFile(file, CHOSEN), toFound, () => ({ guild, channel }))
}

function toChannel(channel: JsonObject, guild: JsonObject) {
  const id = asId(channel.id)
  if (!id) return undefined
  // If the account can no longer see a channel, the package leaves out the channel's server.
  const server = asId(guild.id) ?? (DIRECT.test(String(channel.type)) ? '0' : undefined)
  return {
    id,
    name: asText(channel.name) ?? id,
    isThread: THREAD.test(String(channel.type)),
    url: server && `https://discord.com/channels/${server === '0' ? '@me' : server}/${id}`,
  }
}

function readMessage(
  { value, place }: JsonRecord,
  channel: Channel | undefined,
  exportedAt: string,
): Found | Found[] {
  const message = asObject(value) ?? {}
  const id = asId(message.id)
  const createdAt = isoDateIn(asText(message.timestamp))
  if (!channel) return rejected('the file names no channel before its messages', place, value)
  if (!id) return rejected('a message without an `id`', place, value)
  if (!/^\d+$/.test(id)) return rejected('a message whose `id` is not a number', place, value)
  if (!createdAt) return rejected('a message without a valid `timestamp`', place, value)
  if (NOTICES.test(String(message.type)) || isPollResult(message))
    return skipped('notices by Discord, such as of pins', place)
  const { quote, leftOut } = toQuote(message, id, createdAt)
  // Ids rise with time, and have up to 20 digits. The last copy of a message replaces the others:
  // the copy that was edited last, or else the copy in the latest export.
  const order = `${id.padStart(20, '0')}/${isoDateIn(asText(message.timestampEdited)) ?? ''}/${exportedAt}`
  const { externalId, fields: own } = channel.isThread
    ? threadOf(channel)
    : dayOfChat(channel.id, channel.name, createdAt)
  const fields = { ...own, channelId: channel.id, ...present({ url: channel.url }) }
  return withSkipped(piece(externalId, order, fields, [quote], place), leftOut, place)
}

/** A poll's result is an embed with fields such as `total_votes`, and no text for people. */
function isPollResult(message: JsonObject): boolean {
  return asObjects(message.embeds).some(({ fields }) =>
    asObjects(fields).some(({ name }) => name === 'poll_question_text'),
  )
}

function threadOf({ id, name }: Channel) {
  return {
    externalId: id,
    fields: { title: name, channelName: name, ...present({ createdAt: momentOf(id) }) },
  }
}

function momentOf(id: string): string | undefined {
  if (!/^\d{1,20}$/.test(id)) return undefined
  return new Date(Number((BigInt(id) >> 22n) + EPOCH_MS)).toISOString()
}

function toQuote(
  message: JsonObject,
  id: string,
  createdAt: string,
): { quote: QuoteInput; leftOut: string[] } {
  const author = asObject(message.author) ?? {}
  const forwarded = asObject(message.forwardedMessage)
  const speaker = asName(author.nickname) ?? asName(author.name) ?? asId(author.id)
  const replyingTo = repliedTo(message)
  const own = contentOf(message, author.isBot === true)
  // The author of a forwarded message is unknown. It may be a bot, so its embeds count as content.
  const shared = forwarded && contentOf(forwarded, true)
  const attachments = [...filesOf(message), ...(forwarded ? filesOf(forwarded) : [])]
  const shown = shared?.text ? [own.text, shared.text].filter(Boolean).join('\n') : own.text
  const text = shown.includes('<') ? withNames(shown, message) : shown
  const optional = present({ speaker, replyingTo, attachments })
  const quote = { externalId: id, text, createdAt, ...optional }
  return { quote, leftOut: [...own.leftOut, ...(shared?.leftOut ?? [])] }
}

/**
 * In an export without Discord's markup, a text has ids of people, roles and emoji: `<@7>`, `<@&8>`
 * and `<:loaf:9>`.
 */
const ID_IN_TEXT = /<(?:@[!&]?|a?:(\w{1,32}):)(\d{1,20})>/g

/** Replaces ids in a text by names, as far as the message has them. */
function withNames(text: string, message: JsonObject): string {
  const people = asObjects([message.author, ...asObjects(message.mentions)])
  const all = [...people, ...people.flatMap(({ roles }) => asObjects(roles))]
  const names = new Map(all.map((one) => [asId(one.id), asName(one.nickname) ?? asName(one.name)]))
  return text.replace(ID_IN_TEXT, (markup, emoji: string | undefined, id: string) => {
    const name = names.get(id)
    return emoji ? `:${emoji}:` : name ? `@${name}` : markup
  })
}

/** Pins, forwards and starts of threads have a reference, too. Old versions wrote no type. */
function repliedTo(message: JsonObject): string | undefined {
  const reference = asObject(message.reference)
  const isReply = message.type === 'Reply' || String(message.type) === '19'
  return isReply && reference?.type !== 'Forward' ? asId(reference?.messageId) : undefined
}

/**
 * Returns the words of a message, and the reasons by which its other content is counted. Embeds are
 * the content of many bots. In other messages, an embed beside a text is a preview of one of its
 * links.
 */
function contentOf(message: JsonObject, isByBot: boolean): { text: string; leftOut: string[] } {
  const content = asText(message.content)
  const isPreview = ({ url }: JsonObject) =>
    content !== undefined && (!isByBot || (typeof url === 'string' && content.includes(url)))
  const embeds = asObjects(message.embeds)
  const rows = asObjects(message.components)
  if (embeds.length + rows.length === 0 && message.poll === undefined)
    return { text: content ?? '', leftOut: [] }
  const shown = embeds.filter((embed) => !isPreview(embed))
  const previews = embeds.filter(isPreview).map(() => 'previews of links')
  const images = shown
    .filter(({ image, thumbnail, video }) => image ?? thumbnail ?? video)
    .map(() => 'images of embeds')
  const buttons = rows.map(() => 'rows of buttons')
  const lines = [...linesOfPoll(message.poll), ...shown.flatMap(linesOfEmbed)]
  const text = [content, ...lines].filter(Boolean).join('\n')
  return { text, leftOut: [...previews, ...images, ...buttons] }
}

function linesOfPoll(value: unknown): string[] {
  const { question, answers } = asObject(value) ?? {}
  return [
    ...asTexts([question]),
    ...asTexts(asObjects(answers).map(({ text }) => text)).map(asItem),
  ]
}

const asItem = (text: string) => `• ${text}`

function linesOfEmbed({ author, title, description, fields, footer }: JsonObject): string[] {
  const ofFields = asObjects(fields).flatMap((field) => [field.name, field.value])
  const lines = [asObject(author)?.name, title, description, ...ofFields, asObject(footer)?.text]
  return asTexts(lines)
}

function filesOf(message: JsonObject): string[] {
  const attachments = asObjects(message.attachments).map(
    ({ fileName, url }) => asText(fileName) ?? basename(asText(url) ?? ''),
  )
  const stickers = asObjects(message.stickers).map((sticker) => sticker.name)
  return asTexts([...attachments, ...stickers])
}
