// The request of `POST /sources`: its bounds, the JSON Schema of a thread, and the types that
// derive from it.
import type { Static, TNumber, TString } from 'typebox'
import { named, oneOf, Type } from './json-schema.ts'

type Unit = 'bytes' | 'levels' | 'values' | 'quotes' | 'characters'
const limit = (value: number, unit: Unit, description: string) => ({
  default: value,
  unit,
  description,
})

/**
 * The limits that an operator can set. Callers and operators see the texts. Characters are Unicode
 * code points.
 */
export const LIMIT_DETAILS = {
  bodyBytes: limit(10_485_760, 'bytes', 'Size of a request body, before and after it is inflated.'),
  nesting: limit(
    1_000,
    'levels',
    'Depth of arrays and objects in a request body, unknown fields included.',
  ),
  jsonValues: limit(
    500_000,
    'values',
    'Number of JSON values in a request body, unknown fields included.',
  ),
  quotes: limit(10_000, 'quotes', 'Number of quotes in one request.'),
  externalId: limit(
    512,
    'characters',
    "Length of a source's or a quote's externalId, and of replyingTo.",
  ),
  title: limit(2_000, 'characters', "Length of a source's title."),
  text: limit(100_000, 'characters', "Length of a quote's text."),
  url: limit(2_048, 'characters', "Length of a source's url."),
  description: limit(20_000, 'characters', "Length of a source's description."),
  string: limit(2_000, 'characters', 'Length of every other string.'),
  importBytes: limit(
    104_857_600,
    'bytes',
    'Size of an import in NDJSON, before and after it is inflated.',
  ),
}

export type LimitName = keyof typeof LIMIT_DETAILS
export type Limits = Readonly<Record<LimitName, number>>

export const DEFAULT_LIMITS = Object.fromEntries(
  Object.entries(LIMIT_DETAILS).map(([name, detail]) => [name, detail.default]),
) as Limits

/**
 * The kinds of source that `service` can name. The list is closed, so any other value is an `enum`
 * error.
 */
export const SERVICES = [
  'x',
  'zendesk',
  'linear',
  'googledoc',
  'youtube',
  'slack',
  'email',
  'twitter',
  'facebook',
  'reddit',
  'file',
  'play_store',
  'app_store',
  'spreadsheet',
  'telegram',
  'discord',
  'imessage',
  'custom',
] as const

export type Service = (typeof SERVICES)[number]

/**
 * The name of the string format that refuses lone surrogates, because UTF-8 can't represent them.
 */
export const WELL_FORMED = 'well-formed'
/** The pattern of a text that is not blank. */
export const NOT_BLANK = '\\S'
/**
 * The string format that `parseIsoDate` reads. It is `date-time` without leap seconds and
 * lower-case letters, but with plain dates, and times without an offset. It has this name because
 * generators of clients know it.
 */
export const ISO_DATE = 'date-time'

/** What a quote's id has after the id of its source. */
const EXPORTED_ID = '^[\\w-]{24}$'

/** The JSON Schema of a request. `createThreadParser` adds the rules that no schema can express. */
export function ThreadRequestSchema(limits: Limits) {
  return named(
    'Thread',
    {
      service: oneOf(SERVICES, 'What kind of thing the source is: one of the list.'),
      externalId: required(
        limits.externalId,
        'Your own id. With `service`, it names the source: posting it again updates the source.',
      ),
      title: required(limits.title, 'Title of the source.'),
      channelName: text(limits.string, 'Name of the channel or subreddit.'),
      channelId: text(limits.string, 'Identifier of the channel or subreddit.'),
      description: text(limits.description, 'Brief description of the source.'),
      createdAt: date(limits, 'When the source was created.'),
      url: text(limits.url, 'URL of the source.'),
      ...votes('source'),
      quotes: Type.Array(QuoteRequestSchema(limits), {
        maxItems: limits.quotes,
        description: 'The messages or comments, in order. May be empty.',
      }),
    },
    { description: 'A source together with its quotes.' },
  )
}

function QuoteRequestSchema(limits: Limits) {
  return named(
    'Quote',
    {
      text: required(limits.text, 'Text of the quote.'),
      externalId: text(
        limits.externalId,
        'Your own id. It names the quote within its source: posting it again updates the quote.',
      ),
      speaker: text(limits.string, 'Author of the quote.'),
      username: text(limits.string, 'Another name of `speaker`. If both are sent, `speaker` wins.'),
      createdAt: date(limits, 'When the quote was created.'),
      replyingTo: text(
        limits.externalId,
        'The `externalId` of the quote that this one answers. That quote may arrive later.',
      ),
      ...votes('quote'),
      exportedId: optional(
        Type.String({
          pattern: EXPORTED_ID,
          description: 'Names a quote without an `externalId`, as an export writes it.',
          examples: ['Zk3mY1rQ8sT0uVwX-AbC_d5E'],
        }),
      ),
    },
    { description: 'A comment or message of a source.' },
  )
}

export type ThreadRequest = Static<ReturnType<typeof ThreadRequestSchema>>
export type QuoteRequest = ThreadRequest['quotes'][number]

/** The type without null. Only requests may have null, for an absent field. */
type Present<T> = { [K in keyof T]: NonNullable<T[K]> }

export type PrunedQuote = Present<QuoteRequest>

/** A valid request without its absent fields. */
export type PrunedRequest = Present<Omit<ThreadRequest, 'quotes'>> & { quotes: PrunedQuote[] }

/**
 * A source as it was sent, normalised: dates are in UTC with milliseconds, and `score` is present
 * only if it was sent.
 */
export type SourceFields = Omit<PrunedRequest, 'quotes'>

/** A quote as it was sent, normalised like its source. `username` has become `speaker`. */
export type SentQuote = Omit<PrunedQuote, 'username'>

/** The fields of a quote that are stored. */
export type QuoteFields = Omit<SentQuote, 'exportedId'>

/** An accepted request. No two of its quotes have the same `externalId`. */
export type Thread = { source: SourceFields; quotes: SentQuote[] }

export type FieldNames = { source: readonly string[]; quote: readonly string[] }

/** The known fields of a source and of a quote, in the order of the schema. */
export function fieldNames({ properties }: ReturnType<typeof ThreadRequestSchema>): FieldNames {
  return { source: Object.keys(properties), quote: Object.keys(properties.quotes.items.properties) }
}

/** Makes a schema for a text that is not blank. */
export function required(maxLength: number, description: string) {
  return Type.String({ maxLength, format: WELL_FORMED, pattern: NOT_BLANK, description })
}

function text(maxLength: number, description: string) {
  return optional(Type.String({ maxLength, format: WELL_FORMED, description }))
}

function date(limits: Limits, about: string) {
  const description = `${about} ISO 8601, in UTC without an offset.`
  return optional(
    Type.String({
      maxLength: limits.string,
      format: ISO_DATE,
      description,
      examples: ['2024-05-01T09:30:00Z'],
    }),
  )
}

function votes(of: string) {
  return {
    upVotes: optional(Type.Number({ description: `Upvotes or likes of the ${of}.` })),
    downVotes: optional(Type.Number({ description: `Downvotes or dislikes of the ${of}.` })),
    score: optional(
      Type.Number({
        description: `Score of the ${of}. Without one, \`upVotes\` minus \`downVotes\`.`,
      }),
    ),
  }
}

function optional<T extends TString | TNumber>(schema: T) {
  // One schema with two types, because a union with null would report three errors if the type is
  // wrong.
  return Type.Optional(Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] }))
}
