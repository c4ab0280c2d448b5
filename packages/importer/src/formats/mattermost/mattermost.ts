// Reads the bulk export of Mattermost, whose lines are channels, posts and direct posts.
import { basename } from 'node:path/posix'
import type { Format, Found, InputFile, Place, QuoteInput } from '../format.ts'
import { ownsFolder, piecesOf, rejected, skipped } from '../format.ts'
import { eachRecognised } from '../read/each-recognised.ts'
import { jsonShape } from '../read/json-beginning.ts'
import { foundIn, type JsonRecord, readJsonLines } from '../read/json-records.ts'
import { decodeBeginning } from '../read/utf8-chunks.ts'
import { madeId } from '../values/digest.ts'
import { isoDateOf } from '../values/iso-date.ts'
import {
  asNumber,
  asObject,
  asObjects,
  asText,
  asTexts,
  asWord,
  firstLine,
  type JsonObject,
  present,
} from '../values/record-fields.ts'
import { asName } from '../values/typography.ts'

/** About 20 MB of names. Further channels get their short names. */
const MOST_CHANNELS = 100_000

const piece = piecesOf('custom')

type Names = Map<string, string>

/** Reads each post with its replies as a source. Channel, moment, author and text identify it. */
export const mattermostFormat: Format = {
  name: 'mattermost',
  title: 'Mattermost',
  description: 'Mattermost bulk export (.jsonl or .json, zip or folder)',
  sourceIs: 'a post with its replies',
  owns: ownsFolder({ uploads: /^\/?data\// }),
  skipsOthers: true,
  recognises: isExport,
  read(files, options) {
    const names: Names = new Map()
    const read = (file: InputFile) =>
      foundIn(readJsonLines(file), (record) => readLine(record, names))
    return eachRecognised(isExport, read).read(files, options)
  },
}

/** The user chooses the file's name, often `data.json`. */
const VERSION_LINE = /^\s*\{\s*"type"\s*:\s*"version"/

function isExport({ path }: InputFile, beginning: Buffer): boolean {
  if (path.endsWith('.json')) return VERSION_LINE.test(decodeBeginning(beginning))
  const { isOneLine, members } = jsonShape(beginning)
  const kinds = ['version', 'post', 'direct_post', 'team', 'channel', 'emoji', 'role', 'scheme']
  return (
    path.endsWith('.jsonl') &&
    isOneLine &&
    members.has('type') &&
    kinds.some((kind) => members.has(kind))
  )
}

function readLine({ value, place }: JsonRecord, names: Names): Found | Found[] {
  const { type, channel, post, direct_post } = asObject(value) ?? {}
  const { team, name, display_name } = asObject(channel) ?? {}
  if (names.size < MOST_CHANNELS && asText(display_name))
    names.set(`${team}/${name}`, asText(display_name) ?? '')
  const record = asObject(post) ?? asObject(direct_post)
  if (record !== undefined) return readPost(record, names, value, place)
  if (type === 'post' || type === 'direct_post')
    return rejected('a line without its post', place, value)
  if (asText(type) !== undefined) return []
  return rejected('a line without a `type`', place, value)
}

function readPost(post: JsonObject, names: Names, value: unknown, place: Place): Found | Found[] {
  const members = asTexts(post.channel_members).sort().join(', ')
  const channel = asText(post.channel)
  // Some exports do not name the members of a direct message.
  const channelId =
    members || (channel === undefined ? 'direct messages' : `${post.team}/${channel}`)
  const root = toQuote(post)
  if (root === undefined || (channel === undefined && !('channel_members' in post)))
    return rejected('a post without `create_at`, `user` or `channel`', place, value)
  if (asText(post.type)?.startsWith('system_'))
    return skipped('notices by Mattermost, such as of who joined a channel', place)
  const channelName = names.get(channelId) ?? channelId
  const { externalId, text, createdAt } = root
  const placeholderTitle = `Thread in ${channelName}`
  const fields = {
    placeholderTitle,
    channelName,
    channelId,
    createdAt,
    ...present({ title: firstLine(text) }),
  }
  const toPiece = (quote: Quote) => {
    const order = `${quote.createdAt}/${quote.externalId}`
    return piece(`mattermost/${channelId}/${externalId}`, order, fields, [quote], place)
  }
  const replies = asObjects(post.replies).map((reply) => {
    const quote = toQuote(reply)
    if (quote === undefined) return rejected('a reply without `create_at` or `user`', place, reply)
    return toPiece({ ...quote, replyingTo: externalId })
  })
  return [toPiece(root), ...replies]
}

type Quote = QuoteInput & { externalId: string; createdAt: string }

function toQuote(post: JsonObject): Quote | undefined {
  const user = asText(post.user)
  const millis = asNumber(post.create_at)
  const createdAt = isoDateOf(millis)
  if (user === undefined || createdAt === undefined) return undefined
  const props = asObject(post.props)
  // A webhook may choose the name that is shown.
  const speaker = asName(props?.override_username) ?? user
  const paths = asTexts(asObjects(post.attachments).map(({ path }) => path))
  const attachments = paths.map((path) => basename(path))
  const lines = [post.message, ...asObjects(props?.attachments).flatMap(linesOf)]
  const text = asTexts(lines).join('\n')
  const externalId = madeId(`${millis}/${user}`, [text, ...attachments].join('\0'))
  return { externalId, text, speaker, createdAt, ...present({ attachments }) }
}

/** `fallback` repeats the other fields. */
function linesOf(attached: JsonObject): unknown[] {
  const { pretext, author_name, title, text, fields, footer, fallback } = attached
  const ofFields = asObjects(fields).flatMap((field) => [field.title, asWord(field.value)])
  const own = asTexts([pretext, author_name, title, text, ...ofFields, footer])
  return own.length > 0 ? own : [fallback]
}
