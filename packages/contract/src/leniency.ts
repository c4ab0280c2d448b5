// What the parser tolerates: unknown fields, quotes with the same externalId, and a reply without
// its quote. Strict handling turns them into errors. Without it, an unknown field that looks like a
// known one is ignored with a warning.
import type { Static } from 'typebox'
import { named, Type, text } from './json-schema.ts'
import { namesOf, nearestName } from './near-names.ts'
import type { FieldNames, QuoteRequest, ThreadRequest } from './thread-request.ts'
import {
  addError,
  LONGEST_NAMED_FIELD,
  pointerTo,
  type ValidationErrors,
} from './validation-errors.ts'

const WarningSchema = named('Warning', {
  pointer: text('JSON Pointer (RFC 6901) to the first such field in the request body.'),
  code: Type.Literal('unknown_field', { description: 'What is odd, for programs.' }),
  message: text('What is odd, for people.'),
})

export type Warning = Static<typeof WarningSchema>

export const WarningsSchema = Type.Array(WarningSchema, {
  description:
    'Unknown fields that look like known ones, each name once, at most 20. They were ignored.',
})

const LISTED_WARNINGS = 20

/**
 * At most this number of unknown names is compared, for the source and for all quotes together,
 * because a body can have millions.
 */
const COMPARED_NAMES = 200

/** Stands for the source among the indexes of its quotes. */
export const SOURCE = -1

type Kind = keyof FieldNames
type NameOf<Of extends Kind> = keyof (Of extends 'source' ? ThreadRequest : QuoteRequest)
type Fields = Record<string, unknown>

/**
 * The fields of a source or of a quote as they were sent, with the JSON Pointer of the object that
 * has them.
 */
type SentFields = { sent: object; parent: string; of: Kind }

/**
 * Lists the unknown fields that look like known ones. Leaves out a field if the known one was sent
 * as well, because its sender then knows the right name.
 *
 * @param places the indexes of the quotes that have unknown fields, and `SOURCE` if the source has
 * any.
 */
export function warningsOf(body: Fields, places: readonly number[], names: FieldNames): Warning[] {
  const warnings: Warning[] = []
  const meant = {
    source: new Map<string, string | undefined>(),
    quote: new Map<string, string | undefined>(),
  }
  for (const place of places) {
    const { sent, parent, of } = fieldsAt(body, place)
    for (const name of Object.keys(sent)) {
      const known = names[of]
      if (known.includes(name)) continue
      if (!meant[of].has(name)) {
        if (meant[of].size === COMPARED_NAMES) continue
        meant[of].set(name, nearestName(name, known, ALIASES[of]))
      }
      const field = meant[of].get(name)
      if (field === undefined || isSent(sent, field)) continue
      meant[of].set(name, undefined)
      const message = `${name} is not a field of a ${of} and was ignored. Did you mean ${field}?`
      warnings.push({ pointer: pointerTo(parent, name), code: 'unknown_field', message })
      if (warnings.length === LISTED_WARNINGS) return warnings
    }
  }
  return warnings
}

/**
 * Returns the known field that an unknown one most likely stands for, unless the known one was sent
 * as well.
 */
export function meantField(
  sent: object,
  name: string,
  of: Kind,
  known: readonly string[],
): string | undefined {
  const field = nearestName(name, known, ALIASES[of])
  return field === undefined || isSent(sent, field) ? undefined : field
}

/**
 * Returns the fields at a place of a body. The place is `SOURCE`, or the index of a quote that is
 * an object.
 */
function fieldsAt(body: Fields, place: number): SentFields {
  return place === SOURCE || !Array.isArray(body.quotes)
    ? { sent: body, parent: '', of: 'source' }
    : { sent: body.quotes[place], parent: pointerTo('/quotes', place), of: 'quote' }
}

function isSent(sent: object, field: string): boolean {
  return Object.hasOwn(sent, field) || (field === 'speaker' && Object.hasOwn(sent, 'username'))
}

/**
 * Adds the errors of strict handling.
 *
 * @param request the body without its unknown and absent fields.
 * @param unknown the places of unknown fields, as for `warningsOf`.
 */
export function addStrictErrors(
  list: ValidationErrors,
  { body, request }: { body: Fields; request: Fields },
  unknown: readonly number[],
  names: FieldNames,
): void {
  for (const place of unknown) addUnknownFields(list, fieldsAt(body, place), names)
  if (Array.isArray(request.quotes)) addQuoteErrors(list, request.quotes)
}

function addUnknownFields(
  list: ValidationErrors,
  { sent, parent, of }: SentFields,
  names: FieldNames,
): void {
  for (const name of Object.keys(sent)) {
    if (names[of].includes(name)) continue
    addError(list, () => {
      const isLong = name.length > LONGEST_NAMED_FIELD
      const shown = isLong ? `A name of ${name.length} characters` : name
      const pointer = isLong ? parent : pointerTo(parent, name)
      return { pointer, code: 'unknown_field', message: `${shown} is not a field of a ${of}.` }
    })
  }
}

function addQuoteErrors(list: ValidationErrors, quotes: readonly unknown[]): void {
  const firstIndexes = new Map<unknown, number>()
  for (const [index, quote] of quotes.entries()) {
    const { externalId } = Object(quote)
    const first = firstIndexes.get(externalId)
    if (typeof externalId !== 'string') continue
    if (first === undefined) firstIndexes.set(externalId, index)
    else {
      const message = `quotes[${first}] has the same externalId.`
      addError(list, () => ({ pointer: `/quotes/${index}/externalId`, code: 'duplicate', message }))
    }
  }
  const message = 'replyingTo must be the externalId of a quote of this request.'
  for (const [index, quote] of quotes.entries()) {
    const { replyingTo } = Object(quote)
    if (typeof replyingTo === 'string' && !firstIndexes.has(replyingTo))
      addError(list, () => ({
        pointer: `/quotes/${index}/replyingTo`,
        code: 'unmatched_reply',
        message,
      }))
  }
}

const DATES = [
  'created',
  'date',
  'datetime',
  'time',
  'timestamp',
  'ts',
  'postedat',
  'sentat',
  'publishedat',
]
const VOTES = {
  ...namesOf('upVotes', ['ups', 'likes', 'likecount', 'thumbsup']),
  ...namesOf('downVotes', ['downs', 'dislikes', 'dislikecount', 'thumbsdown']),
  ...namesOf('score', ['points', 'rating', 'votes']),
}

/** Other services' names for our fields, in lower case and without separators. */
const ALIASES = {
  source: {
    ...VOTES,
    ...namesOf('createdAt', DATES),
    ...namesOf('externalId', [
      'id',
      'sourceid',
      'threadid',
      'ticketid',
      'postid',
      'key',
      'uid',
      'guid',
    ]),
    ...namesOf('service', ['platform', 'provider', 'source', 'type']),
    ...namesOf('title', ['headline', 'name', 'subject', 'topic']),
    ...namesOf('description', ['body', 'content', 'selftext', 'summary', 'text']),
    ...namesOf('quotes', ['comments', 'messages', 'posts', 'replies', 'answers', 'items']),
    ...namesOf('url', ['href', 'link', 'permalink', 'uri', 'weburl']),
    ...namesOf('channelName', ['channel', 'subreddit', 'forum', 'room']),
  },
  quote: {
    ...VOTES,
    ...namesOf('createdAt', DATES),
    ...namesOf('externalId', ['id', 'quoteid', 'commentid', 'messageid', 'postid', 'uid', 'guid']),
    ...namesOf('text', ['body', 'content', 'comment', 'message', 'review', 'html', 'plainbody']),
    ...namesOf('speaker', ['author', 'authorname', 'by', 'from', 'name', 'sender', 'user']),
    ...namesOf('replyingTo', [
      'parent',
      'parentid',
      'inreplyto',
      'inreplytoid',
      'replyto',
      'replytoid',
    ]),
  },
} as const satisfies { [Of in Kind]: Readonly<Record<string, NameOf<Of>>> }
