// Converts a record of a day's file to a message of its thread, or says why it is left out.
import type { FormatOptions, Found, Place, QuoteInput, SourceInput } from '../format.ts'
import { piecesOf, rejected, skipped, withSkipped } from '../format.ts'
import type { JsonRecord } from '../read/json-records.ts'
import { isoDateOf } from '../values/iso-date.ts'
import {
  asId,
  asObject,
  asObjects,
  asText,
  type JsonObject,
  present,
} from '../values/record-fields.ts'
import { asName } from '../values/typography.ts'
import { slackContent } from './content.ts'
import {
  addBot,
  addProfile,
  type Directory,
  type SlackConversation,
  userNameOf,
} from './directory.ts'

const piece = piecesOf('slack')

/** Kinds of notices. One is read as a message only if somebody replied to it. */
const NOTICES =
  /^((channel|group)_(join|leave|topic|purpose|name|archive|unarchive|convert_to_private|convert_to_public|posting_permissions)|(pinned|unpinned)_item|bot_(add|remove|enable|disable)|reminder_add|huddle_thread|sh_room_created|sh_room_shared|app_conversation_join|joiner_notification|joiner_notification_for_inviter|assistant_app_thread)$/

/** Kinds of messages that were removed, or hidden by an administrator, as their text says. */
const REMOVED = new Set(['tombstone', 'message_deleted', 'ekm_access_denied'])

export interface MessageContext {
  directory: Directory
  conversation: SlackConversation
  options: FormatOptions
  /**
   * The broadcasts that were read in this channel on this day. Older ones are not kept in memory.
   */
  broadcasts: Set<string>
}

/** Reads a record. A message is identified by its channel and, within it, by its timestamp. */
export function readMessage(
  { value, place }: JsonRecord,
  context: MessageContext,
): Found | Found[] {
  const outer = asObject(value)
  const message = outer?.subtype === 'message_changed' ? asObject(outer.message) : outer
  const ts = timestampOf(message?.ts)
  if (!message || !ts || !/^\d{1,12}(\.\d+)?$/.test(ts))
    return rejected('a message without a timestamp `ts`', place, value)
  const bot = message.subtype === 'bot_add' ? asId(message.bot_id) : undefined
  if (bot) addBot(context.directory, bot, ts)
  addProfile(context.directory, message)
  const reason = reasonToSkip(message, ts, context)
  return reason
    ? skipped(reason, place)
    : toFound(message, ts, timestampOf(outer?.ts) ?? ts, place, context)
}

/** Has six decimals, as Slack writes it. Some programs write a number, without last zeros. */
function timestampOf(value: unknown): string | undefined {
  return typeof value === 'number' ? value.toFixed(6) : asText(value)
}

function reasonToSkip(
  message: JsonObject,
  ts: string,
  context: MessageContext,
): string | undefined {
  const subtype = asText(message.subtype) ?? ''
  const isAnswered = Number(message.reply_count ?? 0) > 0 || asObjects(message.replies).length > 0
  if (REMOVED.has(subtype)) return 'messages that were deleted or hidden'
  if (NOTICES.test(subtype) && !isAnswered)
    return 'notices by Slack, such as of who joined a channel'
  if (subtype === 'reply_broadcast') return 'copies of replies that were also sent to the channel'
  if (subtype === 'thread_broadcast') {
    if (context.broadcasts.has(ts)) return 'copies of replies that were also sent to the channel'
    context.broadcasts.add(ts)
  }
  const isAlone = (timestampOf(message.thread_ts) ?? ts) === ts && !isAnswered
  return context.options.threadsOnly && isAlone ? 'messages that nobody answered' : undefined
}

function toFound(
  message: JsonObject,
  ts: string,
  moment: string,
  place: Place,
  context: MessageContext,
): Found[] {
  const { conversation } = context
  const root = timestampOf(message.thread_ts) ?? ts
  const { text, files, leftOut } = slackContent(message, context.directory)
  const attachments = files.flatMap((file) => asText(file.name) ?? asText(file.title) ?? [])
  const speaker = speakerOf(message, context.directory)
  const replyingTo = root === ts ? undefined : root
  const createdAt = isoDateOf(Number(ts))
  const optional = present({ createdAt, speaker, replyingTo, attachments })
  const quote = { externalId: ts, text, ...optional }
  const externalId = `${conversation.id}/${root}`
  const fields = toFields(quote, ts === root, root, context)
  // Seconds have ten digits until the year 2286, and the number of decimals is fixed, so the texts
  // sort by time. If there are copies, the one that was edited last comes last, and so replaces the
  // others.
  const order = moment.padStart(17, '0') + (asText(asObject(message.edited)?.ts) ?? '')
  return withSkipped(piece(externalId, order, fields, [quote], place), leftOut, place)
}

/**
 * Returns the name of a message's author. A bot may choose a name for each message. The profile of
 * a member of another workspace is only in the message.
 */
function speakerOf(message: JsonObject, directory: Directory): string | undefined {
  const user = asId(message.user) ?? asId(asObject(message.comment)?.user)
  const profile = asObject(message.user_profile)
  const chosen =
    message.subtype === 'bot_message' || message.bot_id ? asName(message.username) : undefined
  const known = chosen ?? (user && directory.users.get(user)) ?? (profile && userNameOf(profile))
  const bot = asObject(message.bot_profile) ?? {}
  // If a person sends a mail to a channel, Slackbot writes it into the channel.
  const sender = user === 'USLACKBOT' ? (senderOf(message) ?? 'Slackbot') : undefined
  const own = known ?? sender ?? asName(message.username) ?? asName(bot.name)
  if (own) return own
  const ids = [message.bot_id, message.app_id, bot.app_id].flatMap((id) => asId(id) ?? [])
  const named = ids.map((id) => directory.users.get(id)).find(Boolean)
  if (named === undefined) directory.unnamed += 1
  return named ?? user ?? ids[0]
}

function senderOf({ files }: JsonObject): string | undefined {
  const [from] = asObjects(files).flatMap((file) =>
    file.mode === 'email' ? asObjects(file.from) : [],
  )
  return asName(from?.name) ?? asText(from?.address)
}

function toFields(
  quote: QuoteInput,
  isRoot: boolean,
  root: string,
  context: MessageContext,
): SourceInput {
  const { conversation, options } = context
  const title = isRoot ? titleOf(quote) : undefined
  const archive = options.workspace && `https://${options.workspace}.slack.com/archives`
  return {
    ...(title ? { title } : { placeholderTitle: `Thread in ${conversation.name}` }),
    channelName: conversation.name,
    channelId: conversation.id,
    ...present({
      createdAt: isoDateOf(Number(root)),
      url: archive && `${archive}/${conversation.id}/p${root.replace('.', '')}`,
    }),
  }
}

/** Returns the first line of the root message, or the name of its first file. */
function titleOf(quote: QuoteInput): string | undefined {
  const [line] = quote.text.trimStart().split('\n', 1)
  const [file] = quote.attachments ?? []
  return asText(line?.trim()) ?? (file && `[file: ${file}]`)
}
