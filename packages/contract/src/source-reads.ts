// Stored sources in the form in which callers read them (single, in lists, by look-ups): schemas,
// types, and parsers of requests.
import type { Static } from 'typebox'
import { QuoteAnswerSchema, SourceAnswerSchema } from './answers.ts'
import { DeleteByIdQuerySchema } from './deletions.ts'
import { parseIsoDate } from './field-values.ts'
import {
  closed,
  count,
  moment,
  named,
  next,
  oneOf,
  optional,
  pageParameters,
  Type,
  text,
} from './json-schema.ts'
import { parseBody } from './parse-thread.ts'
import { type Limits, required, SERVICES, type Service, WELL_FORMED } from './thread-request.ts'
import { type Parsed, refuseField } from './validation-errors.ts'
import { createParser, createQueryParser, type Params } from './validator.ts'

/**
 * Without `limit`, a page has DEFAULT_OF_PAGE quotes or sources. With `limit`, it may have at most
 * MOST_OF_PAGE.
 */
const MOST_OF_PAGE = 1_000
const DEFAULT_OF_PAGE = 100

/** The form of a cursor among quotes: the date or nothing, the position, and the id of a quote. */
const QUOTE_CURSOR = /^(-?\d{1,15})?~(\d{16}\.\d{6})~([\w-]{48})$/

const pageFields = (cursor: string) =>
  pageParameters({ most: MOST_OF_PAGE, byDefault: DEFAULT_OF_PAGE, cursor })

export const SourcePageQuerySchema = closed('SourcePageQuery', pageFields(QUOTE_CURSOR.source))

const { outcome: _ofSource, ...sourceFields } = SourceAnswerSchema.properties
const { outcome: _ofQuote, ...quoteFields } = QuoteAnswerSchema.properties

/** The answer of `GET /sources/{id}`, and of `GET /sources` with an externalId. */
export const SourcePageSchema = named('SourcePage', {
  source: named('ReadSource', sourceFields),
  quotes: Type.Array(
    named('ReadQuote', {
      ...quoteFields,
      position: text('Sorts the quotes of a source in the order in which they were first given.'),
    }),
  ),
  next,
})

export type SourcePage = Static<typeof SourcePageSchema>

/**
 * A cursor: the quote after which a page begins. If all quotes have a date, they are sorted by date
 * first.
 */
export interface QuoteCursor {
  /** The date in ms since 1970. Absent if the quotes are sorted only by position. */
  date?: number
  position: string
  /** The id of the quote, which begins with its source's id. */
  id: string
}

/**
 * The request for a page of a source's quotes: at most `limit` quotes, beginning after a cursor.
 */
export type PageQuery = { limit: number; after?: QuoteCursor }

const parseFields = createQueryParser(SourcePageQuerySchema)

/** Checks the query of `GET /sources/{id}`. */
export function parsePageQuery(params: Params): Parsed<PageQuery> {
  const query = parseFields(params)
  return query.ok ? parsePage(query.value) : query
}

function parsePage({
  limit = DEFAULT_OF_PAGE,
  after,
}: Static<typeof SourcePageQuerySchema>): Parsed<PageQuery> {
  if (after === undefined) return { ok: true, value: { limit } }
  const [, date, position, id] = QUOTE_CURSOR.exec(after) ?? []
  if (position === undefined || id === undefined)
    return refuseField('after', 'must be `next` of an earlier page.')
  return {
    ok: true,
    value: { limit, after: { ...(date !== undefined && { date: Number(date) }), position, id } },
  }
}

/** Writes a cursor in the form of `next` and `after`. */
export function quoteCursorText({ date, position, id }: QuoteCursor): string {
  return `${date ?? ''}~${position}~${id}`
}

/**
 * The form of a list's cursor: the date and the id of a source, and a mark of the list to which the
 * cursor belongs.
 */
export const LIST_CURSOR = /^(\d{15}\/[\w-]{24})~([\w-]{8})$/

/**
 * The query of `GET /sources`. With `externalId`, it names one source. Without, it lists the
 * tenant's sources.
 */
export function SourcesQuerySchema({ externalId }: Pick<Limits, 'externalId'>) {
  return closed('SourcesQuery', {
    service: optional(oneOf(SERVICES, 'The service of the source, or of the listed ones.')),
    externalId: optional(
      required(externalId, "The caller's own identifier of one source; for a list, absent."),
    ),
    since: optional(moment('Of a list: only those first accepted since then.')),
    ...pageFields(`${QUOTE_CURSOR.source}|${LIST_CURSOR.source}`),
  })
}

type SourcesFields = Static<ReturnType<typeof SourcesQuerySchema>>

/** The answer of `GET /sources` without `externalId`. */
export const SourceListSchema = named('SourceList', {
  sources: Type.Array(
    named('ListedSource', {
      ...SourcePageSchema.properties.source.properties,
      quoteCount: count('Stored quotes of the source.'),
      acceptedAt: moment('When the first request for the source was accepted.'),
    }),
  ),
  next,
})

export type SourceList = Static<typeof SourceListSchema>
export type ListedSource = SourceList['sources'][number]

/**
 * The request for a page of a list: at most `limit` sources, beginning after a cursor of the store.
 */
export type SourceListQuery = { service?: Service; since?: Date; limit: number; after?: string }

type SourceName = { service: Service; externalId: string }
type SourcesQuery = { name: SourceName; page: PageQuery } | { list: SourceListQuery }

/**
 * Makes the parser for the query of `GET /sources`. If `listSources` is `off`, it refuses lists.
 */
export function createSourcesParser(
  limits: Pick<Limits, 'externalId'> & { listSources: 'on' | 'off' },
) {
  const parseFields = createQueryParser(SourcesQuerySchema(limits))
  return (params: Params): Parsed<SourcesQuery> => {
    const query = parseFields(params)
    if (!query.ok) return query
    const { service, externalId, since, ...pageTexts } = query.value
    if (externalId === undefined)
      return limits.listSources === 'on'
        ? { ok: true, value: { list: listOf(query.value) } }
        : refuseField('externalId', NO_LIST, 'required')
    if (service === undefined)
      return refuseField('service', 'is required beside externalId.', 'required')
    if (since !== undefined)
      return refuseField('since', 'is for a list: leave out since, or externalId.')
    const page = parsePage(pageTexts)
    return page.ok ? { ok: true, value: { name: { service, externalId }, page: page.value } } : page
  }
}

const NO_LIST = 'is required: this service lists no sources (its setting LIST_SOURCES is off).'

function listOf({ since, limit = DEFAULT_OF_PAGE, ...query }: SourcesFields): SourceListQuery {
  return {
    ...query,
    limit,
    ...(since !== undefined && { since: dateOf(since) }),
  }
}

const dateOf = (text: string) => new Date(parseIsoDate(text) ?? text)

const SOURCES_PER_LOOKUP = 1_000

/**
 * The body of `POST /sources:lookup`. An unknown field is an error, because the caller may mean it
 * as a filter.
 */
export function LookupRequestSchema({ externalId }: Pick<Limits, 'externalId'>) {
  return closed('LookupRequest', {
    service: oneOf(SERVICES, 'The service of the sources.'),
    externalIds: Type.Array(Type.String({ maxLength: externalId, format: WELL_FORMED }), {
      maxItems: SOURCES_PER_LOOKUP,
      description: "The caller's own identifiers of the sources.",
    }),
  })
}

export const LookupAnswerSchema = named('LookupAnswer', {
  sources: Type.Array(SourcePageSchema.properties.source, {
    description: 'The stored ones, in the order asked for.',
  }),
  rest: optional(
    Type.Array(Type.String(), {
      description: 'The externalIds that were not looked up, because the answer is full.',
    }),
  ),
})

/** Makes the parser for the body of `POST /sources:lookup`. */
export function createLookupParser(limits: Pick<Limits, 'externalId' | 'jsonValues' | 'nesting'>) {
  const parse = createParser(LookupRequestSchema(limits))
  return (text: Buffer) => parseBody(text, limits, parse)
}

/** The form of an export's cursor: a source, perhaps a position in it, and a mark of the export. */
export const EXPORT_CURSOR = /^([\w-]{24})(?:~(\d{16}\.\d{6}))?~([\w-]{8})$/

/** The query of `GET /sources:export`. */
export function ExportQuerySchema({ string }: Pick<Limits, 'string'>) {
  return closed('ExportQuery', {
    ...DeleteByIdQuerySchema.properties,
    service: optional(oneOf(SERVICES, 'Only threads of this service.')),
    since: optional(moment('Only threads that were posted since then.')),
    speaker: optional(
      required(string, 'Only quotes of this speaker, and only threads that have one.'),
    ),
    after: optional(
      Type.String({
        pattern: EXPORT_CURSOR.source,
        description: '`next` of the page before, of the same export.',
      }),
    ),
  })
}

/** What an export has, and the cursor after which a page begins. */
export interface ExportQuery {
  service?: Service
  since?: Date
  speaker?: string
  after?: string
}

/** Makes the parser of the query of `GET /sources:export`. */
export function createExportParser(limits: Pick<Limits, 'string'>) {
  const parseFields = createQueryParser(ExportQuerySchema(limits))
  return (params: Params): Parsed<ExportQuery & { tenant?: string }> => {
    const query = parseFields(params)
    if (!query.ok) return query
    const { since, ...others } = query.value
    return { ok: true, value: { ...others, ...(since !== undefined && { since: dateOf(since) }) } }
  }
}

/** The last line of a page of an export that has another one. */
export const ExportNextSchema = named('ExportNext', {
  next: text('Give it as `after` for the next page.'),
})
