// Reads Reddit's submissions and comments as NDJSON, in the form of the dumps of Pushshift and its
// successors.
import { isRecord } from '@sluice/contract'
import type { Format, Found, Place, QuoteInput, SourceInput } from '../format.ts'
import { eachFile, piecesOf, rejected, skipped, withSkipped } from '../format.ts'
import { byShape } from '../read/json-beginning.ts'
import { foundIn, type JsonRecord, readJsonLines } from '../read/json-records.ts'
import { isoDateOf } from '../values/iso-date.ts'
import {
  asId,
  asNumber,
  asObject,
  asObjects,
  asText,
  type JsonObject,
  present,
} from '../values/record-fields.ts'
import { withoutEntities } from '../values/typography.ts'

const piece = piecesOf('reddit')
const SITE = 'https://www.reddit.com'
const SUBMISSION = 't3_'
const COMMENT = 't1_'

/** Matches what replaces deleted texts, titles and names. It may name a policy or a law. */
const GONE =
  /^\[ ?(?:deleted|removed|unavailable)(?: by (?:user|author|mod(?:erator)?s?|admins?|automoderator|reddit\b.*))? ?\]$/i
/** Matches the same in any language. A real author's name contains no brackets. */
const BRACKETED = /^\[[^[\]\n]+\]$/
const LONGEST_MARK = 200

/**
 * Reads submissions as sources, and comments as quotes of the submission that `link_id` names. Ids
 * are Reddit's full names (`t3_…`, `t1_…`). Replacements of deleted texts are left out, so that
 * they never replace a stored text.
 */
export const redditFormat: Format = {
  name: 'reddit',
  title: 'Reddit',
  description: 'Reddit submissions and comments as NDJSON, also .zst',
  sourceIs: 'a submission with its comments',
  recognises: byShape(
    ({ root, isOneLine, members }) =>
      root === '{' &&
      isOneLine &&
      members.has('subreddit') &&
      (members.has('link_id') || members.has('selftext')),
  ),
  read: eachFile((file) => foundIn(readJsonLines(file), readRecord)),
}

function readRecord({ value, place }: JsonRecord): Found | Found[] {
  if (isRecord(value) && asId(value.id) !== undefined) {
    const link = fullName(SUBMISSION, value.link_id)
    if (link !== '') return readComment(value, fullName(COMMENT, value.id), link, place)
    if (value.title !== undefined)
      return readSubmission(value, fullName(SUBMISSION, value.id), place)
  }
  if (isRecord(value) && value.dest !== undefined) return skipped('private messages', place)
  return rejected('The record is neither a submission nor a comment.', place, value)
}

function readSubmission(submission: JsonObject, externalId: string, place: Place): Found[] {
  const createdAt = dateOf(submission)
  const title = textIn(submission.title)
  const permalink = asText(submission.permalink)
  const fields: SourceInput = present({
    title: isGone(title, submission) ? undefined : title,
    placeholderTitle: placeholder(permalink, externalId),
    ...channelOf(submission),
    url: permalink && `${SITE}${permalink}`,
    createdAt,
    score: asNumber(submission.score),
  })
  const order = `${createdAt ?? ''}${versionOf(submission)}`
  const { text, leftOut } = submissionText(submission, permalink)
  const quotes = text === undefined ? [] : [toQuote(submission, externalId, text)]
  return withSkipped(piece(externalId, order, fields, quotes, place), leftOut, place)
}

/**
 * Returns a submission's own text, the text of the submission that it shares, the options of its
 * poll, and the captions of its images. If there are none, returns its link.
 */
function submissionText(submission: JsonObject, permalink: string | undefined) {
  const own = textIn(submission.selftext)
  const isRemoved = isGone(own, submission)
  const shared = asObjects(submission.crosspost_parent_list).map((one) => {
    const text = textIn(one.selftext)
    return isGone(text, one) ? undefined : text
  })
  const answers = asObjects(asObject(submission.poll_data)?.options).map(
    ({ text }) => `• ${textIn(text) ?? ''}`,
  )
  const captions = asObjects(asObject(submission.gallery_data)?.items).map(({ caption }) =>
    textIn(caption),
  )
  const lines = [isRemoved ? undefined : own, ...shared, ...answers, ...captions].filter(
    (line) => line !== undefined,
  )
  const url = textIn(submission.url)
  const link = permalink !== undefined && url?.endsWith(permalink) ? undefined : url
  const images = Object.keys(asObject(submission.media_metadata) ?? {}).map(
    () => 'images of submissions',
  )
  const removed = isRemoved ? ['texts of submissions that were deleted or removed'] : []
  if (lines.length === 0)
    return { text: isRemoved ? undefined : link, leftOut: [...removed, ...images] }
  return {
    text: lines.join('\n'),
    leftOut: [...removed, ...images, ...(link ? ['links beside a text'] : [])],
  }
}

function readComment(comment: JsonObject, externalId: string, link: string, place: Place): Found {
  const text = textIn(comment.body)
  if (text === undefined) return skipped('comments without text', place)
  if (isGone(text, comment)) return skipped('comments that were deleted or removed', place)
  const parent = fullName(COMMENT, comment.parent_id)
  const isTop =
    !parent.startsWith(COMMENT) || parent.slice(COMMENT.length) === link.slice(SUBMISSION.length)
  const replyingTo = isTop ? undefined : parent
  const quote = { ...toQuote(comment, externalId, text), ...present({ replyingTo }) }
  const placeholderTitle = placeholder(asText(comment.permalink), link)
  const order = `${quote.createdAt ?? ''}/${externalId}${versionOf(comment)}`
  return piece(link, order, { ...channelOf(comment), placeholderTitle }, [quote], place)
}

/**
 * Returns the version of a record. The copy that was edited last replaces the others. Among equal
 * ones, the copy that was retrieved last does. The seconds have ten digits until the year 2286, so
 * the texts sort by time.
 */
function versionOf({ edited, retrieved_on, retrieved_utc }: JsonObject): string {
  const changed = asNumber(edited)
  const retrieved = asNumber(retrieved_on ?? retrieved_utc)
  return changed === undefined && retrieved === undefined
    ? ''
    : `/${changed ?? 0}/${retrieved ?? 0}`
}

/** Reads an id. Some dumps write it without its kind, or as a decimal number. */
function fullName(kind: string, value: unknown): string {
  const id = asId(value) ?? ''
  if (id === '' || id.charAt(2) === '_') return id
  return `${kind}${typeof value === 'number' || /^\d{8,}$/.test(id) ? Number(id).toString(36) : id}`
}

/** Reads only the score, because Reddit blurs the votes, and `ups` repeats the score. */
function toQuote(record: JsonObject, externalId: string, text: string): QuoteInput {
  const author = asText(record.author)
  const speaker = BRACKETED.test(author ?? '') ? undefined : author
  return {
    text,
    externalId,
    ...present({ speaker, createdAt: dateOf(record), score: asNumber(record.score) }),
  }
}

function channelOf({ subreddit, subreddit_id }: JsonObject): SourceInput {
  const name = asText(subreddit)
  return present({ channelName: name && `r/${name}`, channelId: asText(subreddit_id) })
}

function dateOf({ created_utc }: JsonObject): string | undefined {
  return isoDateOf(asNumber(created_utc))
}

/**
 * Returns the title from a permalink such as
 * `/r/keyboards/comments/1abcde/which_keyboard_do_you_use/k2f/`. If it has no title, returns the
 * id.
 */
function placeholder(permalink: string | undefined, externalId: string): string {
  const title = permalink?.split('/', 6)[5]
  return title?.replaceAll('_', ' ').trim() || externalId
}

function textIn(value: unknown): string | undefined {
  const text = asText(value)
  // Reddit's editor writes this entity into empty lines.
  return text && asText(withoutEntities(text).replaceAll('&#x200B;', ''))
}

/** Returns whether a text marks a deletion: a known mark, or any brackets in a deleted record. */
function isGone(text: string | undefined, { author, removed_by_category }: JsonObject): boolean {
  const mark = text?.trim() ?? ''
  if (!mark.startsWith('[') || mark.length > LONGEST_MARK) return false
  const isRecordGone =
    BRACKETED.test(asText(author) ?? '') || asText(removed_by_category) !== undefined
  return GONE.test(mark) || (isRecordGone && BRACKETED.test(mark))
}
