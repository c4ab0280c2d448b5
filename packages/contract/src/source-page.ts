// A stored source as callers read it, in pages of its quotes: schemas, types, and the parser of the query.
import type { Static } from 'typebox'
import { QuoteAnswerSchema, SourceAnswerSchema } from './answers.ts'
import { type Parsed, refuseField } from './faults.ts'
import { Type, text } from './json-schema.ts'
import { createQueryParser, type Params } from './validator.ts'

/** A page has at most MOST_OF_PAGE quotes or sources, and DEFAULT_OF_PAGE without `limit`. */
const MOST_OF_PAGE = 1_000
export const DEFAULT_OF_PAGE = 100

/** The form of a cursor among quotes: date or nothing, position, and id of a quote. */
export const QUOTE_CURSOR = /^(-?\d{1,15})?~(\d{16}\.\d{6})~([\w-]{48})$/

/** The parameters of every page. @param cursor the pattern of `after`. */
export const pageFields = (cursor: string) => ({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MOST_OF_PAGE,
      description: `Most quotes of this page, or sources of a list; ${DEFAULT_OF_PAGE} if it is absent.`,
    }),
  ),
  after: Type.Optional(
    Type.String({ pattern: cursor, description: '`next` of the page before, of the same source or list.' }),
  ),
})

/** The query of `GET /sources/{id}`. */
export const SourcePageQuerySchema = Type.Object(pageFields(QUOTE_CURSOR.source), {
  title: 'SourcePageQuery',
  additionalProperties: false,
})

const { outcome: _ofSource, ...sourceFields } = SourceAnswerSchema.properties
const { outcome: _ofQuote, ...quoteFields } = QuoteAnswerSchema.properties

/** The answer of `GET /sources/{id}`, and of `GET /sources` with an externalId. */
export const SourcePageSchema = Type.Object(
  {
    source: Type.Object(sourceFields, { title: 'ReadSource' }),
    quotes: Type.Array(
      Type.Object(
        {
          ...quoteFields,
          position: text('Sorts the quotes of a source in the order in which they were first given.'),
        },
        { title: 'ReadQuote' },
      ),
    ),
    next: Type.Optional(text('Give it as `after` for the next page. Absent on the last one.')),
  },
  { title: 'SourcePage' },
)

export type SourcePage = Static<typeof SourcePageSchema>

/** A cursor: the quote after which a page begins. Quotes are sorted by date first if all of them have one. */
export interface QuoteCursor {
  /** The date in ms since 1970. Absent: sorted by position alone. */
  date?: number
  position: string
  /** The id of the quote. It begins with that of its source. */
  id: string
}

/** A page of a source's quotes: at most `limit`, beginning after a cursor. */
export interface PageQuery {
  limit: number
  after?: QuoteCursor
}

const parseFields = createQueryParser<Static<typeof SourcePageQuerySchema>>(SourcePageQuerySchema)

/** Checks the query of `GET /sources/{id}`. */
export function parsePageQuery(params: Params): Parsed<PageQuery> {
  const query = parseFields(params)
  return query.ok ? parsePage(query.value) : query
}

/** Reads the parameters of a page of quotes. */
export function parsePage({ limit = DEFAULT_OF_PAGE, after }: Static<typeof SourcePageQuerySchema>): Parsed<PageQuery> {
  if (after === undefined) return { ok: true, value: { limit } }
  const cursor = readCursor(after)
  if (cursor === undefined) return refuseField('after', 'must be `next` of an earlier page.')
  return { ok: true, value: { limit, after: cursor } }
}

/** The cursor as `next` and `after` carry it. */
export function quoteCursorText({ date, position, id }: QuoteCursor): string {
  return `${date ?? ''}~${position}~${id}`
}

function readCursor(text: string): QuoteCursor | undefined {
  const [, date, position, id] = QUOTE_CURSOR.exec(text) ?? []
  if (position === undefined || id === undefined) return undefined
  return { ...(date !== undefined && { date: Number(date) }), position, id }
}
