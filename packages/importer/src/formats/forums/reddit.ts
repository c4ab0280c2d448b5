// Reddit's submissions and comments as NDJSON, as the dumps of Pushshift and its successors have them.
import { isRecord } from '@sluice/contract'
import type { Format, Found, Piece, Place, QuoteInput, SourceFields } from '../format.ts'
import { eachFile, rejected, skipped } from '../format.ts'
import { byShape } from '../read/json-beginning.ts'
import { foundIn, type JsonRecord, readJsonLines } from '../read/json-records.ts'
import { isoDateOf } from '../values/iso-date.ts'
import { asId, asNumber, asText, type JsonObject, present } from '../values/record-fields.ts'

const SITE = 'https://www.reddit.com'
const SUBMISSION = 't3_'
const COMMENT = 't1_'

/** Stands in place of deleted and removed texts, titles and names. Removals by Reddit may name the policy. */
const GONE = /^\[ ?(?:deleted|removed)(?: by (?:user|moderators?|reddit(?: on account of violating .*)?))? ?\]$/i
const LONGEST_MARK = 200

/**
 * Reads submissions as sources, and comments as quotes of the submission that `link_id` names. Ids are Reddit's full
 * names (`t3_…`, `t1_…`). Marks of deleted texts are left out, so that they never replace a stored text.
 */
export const redditFormat: Format = {
  name: 'reddit',
  description: 'Reddit submissions and comments as NDJSON, also .zst',
  recognises: byShape(
    ({ root, isOneLine, members }) =>
      root === '{' && isOneLine && members.has('subreddit') && (members.has('link_id') || members.has('selftext')),
  ),
  read: eachFile((file) => foundIn(readJsonLines(file), readRecord)),
}

function readRecord({ value, place }: JsonRecord): Found | Found[] {
  const id = isRecord(value) ? asId(value.id) : undefined
  if (isRecord(value) && id !== undefined) {
    const link = asText(value.link_id)
    if (link !== undefined) return readComment(value, `${COMMENT}${id}`, link, place)
    if (value.title !== undefined) return readSubmission(value, `${SUBMISSION}${id}`, place)
  }
  return rejected('The record is neither a submission nor a comment.', place, value)
}

function readSubmission(submission: JsonObject, externalId: string, place: Place): Found[] {
  const createdAt = dateOf(submission)
  const title = textIn(submission.title)
  const permalink = asText(submission.permalink)
  const fields: SourceFields = present({
    title: title === undefined || isGone(title) ? undefined : title,
    placeholderTitle: placeholder(permalink, externalId),
    ...channelOf(submission),
    url: permalink && `${SITE}${permalink}`,
    createdAt,
    score: asNumber(submission.score),
  })
  const text = submissionText(submission, permalink)
  if (isGone(text))
    return [piece(externalId, fields, [], place), skipped('texts of submissions that were deleted or removed', place)]
  const quotes = text === undefined ? [] : [toQuote(submission, externalId, text)]
  return [piece(externalId, fields, quotes, place)]
}

function submissionText({ selftext, url }: JsonObject, permalink: string | undefined): string | undefined {
  const link = textIn(url)
  const isOwn = permalink !== undefined && link?.endsWith(permalink)
  return textIn(selftext) ?? (isOwn ? undefined : link)
}

function readComment(comment: JsonObject, externalId: string, link: string, place: Place): Found {
  const text = textIn(comment.body)
  if (text === undefined) return skipped('comments without text', place)
  if (isGone(text)) return skipped('comments that were deleted or removed', place)
  const parent = asText(comment.parent_id)
  const replyingTo = parent?.startsWith(COMMENT) ? parent : undefined
  const quote = { ...toQuote(comment, externalId, text), ...present({ replyingTo }) }
  const placeholderTitle = placeholder(asText(comment.permalink), link)
  return piece(link, { ...channelOf(comment), placeholderTitle }, [quote], place)
}

function piece(externalId: string, fields: SourceFields, quotes: QuoteInput[], place: Place): Piece {
  const order = fields.createdAt ?? quotes[0]?.createdAt ?? ''
  return { kind: 'piece', service: 'reddit', externalId, order, fields, quotes, place }
}

/** Makes a quote. Reads the score only, because Reddit blurs the votes, and `ups` repeats the score. */
function toQuote(record: JsonObject, externalId: string, text: string): QuoteInput {
  const author = asText(record.author)
  const speaker = isGone(author) ? undefined : author
  return { text, externalId, ...present({ speaker, createdAt: dateOf(record), score: asNumber(record.score) }) }
}

function channelOf({ subreddit, subreddit_id }: JsonObject): SourceFields {
  const name = asText(subreddit)
  return present({ channelName: name && `r/${name}`, channelId: asText(subreddit_id) })
}

function dateOf({ created_utc }: JsonObject): string | undefined {
  return isoDateOf(asNumber(created_utc))
}

/**
 * Returns the title in a permalink, such as `/r/keyboards/comments/1abcde/which_keyboard_do_you_use/k2f/`, or the id if
 * the permalink has no title.
 */
function placeholder(permalink: string | undefined, externalId: string): string {
  const title = permalink?.split('/', 6)[5]
  return title?.replaceAll('_', ' ').trim() || externalId
}

/** Returns a text without entities: Reddit writes them for `<`, `>` and `&`. */
function textIn(value: unknown): string | undefined {
  return asText(value)?.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

function isGone(text: string | undefined): boolean {
  return text !== undefined && text.length <= LONGEST_MARK && GONE.test(text)
}
