// Reads the JSON of DiscordChatExporter, old and new: a file for each channel or thread, or for each part of one.
import type { Format, Found, InputFile, Piece, Place, QuoteInput, SourceFields } from '../format.ts'
import { rejected, skipped } from '../format.ts'
import { eachJsonFile, foundIn, type JsonRecord, readJson } from '../read/json-records.ts'
import { DAY_CHARACTERS, isoDateIn } from '../values/iso-date.ts'
import { asId, asObject, asObjects, asText, type JsonObject, present } from '../values/record-fields.ts'

/**
 * Reads each thread as a source, and each UTC day of any other channel, which has no end. Memory: the largest message.
 * The JSON has no specification: see https://github.com/Tyrrrz/DiscordChatExporter.
 */
export const discordFormat: Format = {
  name: 'discord',
  description: 'Discord channels, threads and direct messages (JSON of DiscordChatExporter)',
  // DiscordChatExporter puts what people sent into such a folder.
  owns: (_, own) => (path) => own.has(/^(.*)_Files\//.exec(path)?.[1] ?? path),
  recognises: async (files, beginning) => {
    const first = files.find(({ path }) => path.endsWith('.json'))
    return first !== undefined && /^\uFEFF?\s*\{\s*"guild"\s*:/.test((await beginning(first)).toString('utf8'))
  },
  read: eachJsonFile(readChannel),
  restore: (record, { guild = {}, channel = {} }, path) => {
    const [server, place] = [JSON.stringify(guild), JSON.stringify(channel)]
    return { [path]: `{"guild":${server},"channel":${place},"messages":[${record}]}` }
  },
}

const CHOSEN = ['/guild', '/channel', '/messages/*']

/** Kinds of messages that are Discord's own notices. Versions that did not know a kind wrote its number. */
const NOTICES =
  /^(RecipientAdd|RecipientRemove|Call|ChannelNameChange|ChannelIconChange|ChannelPinnedMessage|GuildMemberJoin|ThreadCreated|[1-9]|1[0128])$/
const THREAD = /thread$|^1[012]$/i
/** An id of Discord has the milliseconds since this moment, above 22 other bits. */
const EPOCH_MS = 1_420_070_400_000n

type Channel = NonNullable<ReturnType<typeof toChannel>>

async function* readChannel(file: InputFile): AsyncGenerator<readonly Found[]> {
  let guild: JsonObject = {}
  let channel: JsonObject = {}
  let known: Channel | undefined
  const toFound = (record: JsonRecord) => {
    if (record.path === '/messages/*') return readMessage(record, known)
    if (record.path === '/guild') guild = asObject(record.value) ?? {}
    else channel = asObject(record.value) ?? {}
    known = toChannel(channel, guild)
    return []
  }
  yield* foundIn(readJson(file, CHOSEN), toFound, () => ({ guild, channel }))
}

function toChannel(channel: JsonObject, guild: JsonObject) {
  const id = asId(channel.id)
  if (!id) return undefined
  const server = asId(guild.id) ?? '0'
  return {
    id,
    name: asText(channel.name) ?? id,
    isThread: THREAD.test(String(channel.type)),
    url: `https://discord.com/channels/${server === '0' ? '@me' : server}/${id}`,
  }
}

function readMessage({ value, place }: JsonRecord, channel: Channel | undefined): Found {
  const message = asObject(value) ?? {}
  const id = asId(message.id)
  const createdAt = isoDateIn(asText(message.timestamp))
  if (!channel) return rejected('the file names no channel before its messages', place, value)
  if (!id) return rejected('a message without an `id`', place, value)
  if (!/^\d+$/.test(id)) return rejected('a message whose `id` is not a number', place, value)
  if (!createdAt) return rejected('a message without a valid `timestamp`', place, value)
  if (NOTICES.test(String(message.type))) return skipped('notices by Discord, such as of pins', place)
  return toPiece(toQuote(message, id, createdAt), channel, id, createdAt, place)
}

function toPiece(quote: QuoteInput, channel: Channel, id: string, createdAt: string, place: Place): Piece {
  const day = createdAt.slice(0, DAY_CHARACTERS)
  const externalId = channel.isThread ? channel.id : `${channel.id}/${day}`
  // Ids ascend with time, as numbers of up to 20 digits.
  const order = id.padStart(20, '0')
  const fields = toFields(channel, day)
  return { kind: 'piece', service: 'discord', externalId, order, fields, quotes: [quote], place }
}

function toFields({ id, name, isThread, url }: Channel, day: string): SourceFields {
  const createdAt = isThread ? momentOf(id) : `${day}T00:00:00.000Z`
  const title = isThread ? name : `${name}, ${day}`
  return { title, channelName: name, channelId: id, url, ...(createdAt && { createdAt }) }
}

function momentOf(id: string): string | undefined {
  if (!/^\d{1,20}$/.test(id)) return undefined
  return new Date(Number((BigInt(id) >> 22n) + EPOCH_MS)).toISOString()
}

function toQuote(message: JsonObject, id: string, createdAt: string): QuoteInput {
  const author = asObject(message.author) ?? {}
  const forwarded = asObject(message.forwardedMessage) ?? {}
  const speaker = asText(author.nickname) ?? asText(author.name) ?? asId(author.id)
  const replyingTo = repliedTo(message)
  const attachments = [...filesOf(message), ...filesOf(forwarded)]
  const text = [textOf(message), textOf(forwarded)].filter(Boolean).join('\n')
  return { externalId: id, text, createdAt, ...present({ speaker, replyingTo, attachments }) }
}

/** Pins, forwards and starts of threads have a reference too. Old versions did not write its type. */
function repliedTo(message: JsonObject): string | undefined {
  const reference = asObject(message.reference)
  const isReply = message.type === 'Reply' || String(message.type) === '19'
  return isReply && reference?.type !== 'Forward' ? asId(reference?.messageId) : undefined
}

/** The text of a bot often stands in embeds only. A link's preview is an embed, too, but its message has a text. */
function textOf(message: JsonObject): string {
  return asText(message.content) ?? asObjects(message.embeds).flatMap(linesOfEmbed).join('\n')
}

function linesOfEmbed(embed: JsonObject): string[] {
  const fields = asObjects(embed.fields).flatMap((field) => [field.name, field.value])
  return [embed.title, embed.description, ...fields].flatMap((line) => asText(line) ?? [])
}

function filesOf(message: JsonObject): string[] {
  const attachments = asObjects(message.attachments).map((attachment) => attachment.fileName)
  const stickers = asObjects(message.stickers).map((sticker) => sticker.name)
  return [...attachments, ...stickers].flatMap((name) => asText(name) ?? [])
}
