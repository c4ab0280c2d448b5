// A stored source as callers read it, in pages of its quotes: schemas, types, and the parser of the query.
import type { Static } from 'typebox'
import { QuoteAnswerSchema, SourceAnswerSchema } from './answers.ts'
import { addFault, type FaultList, fieldFault, type Parsed, refuse } from './faults.ts'
import { Type, text } from './json-schema.ts'
import { createParser } from './validator.ts'

/** The most quotes or sources of one page, and their number without `limit`. */
const MOST_OF_PAGE = 1_000
export const DEFAULT_OF_PAGE = 100

/** The parameters of every page. */
export const pageFields = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MOST_OF_PAGE,
      description: `Most quotes of this page, or sources of a list; ${DEFAULT_OF_PAGE} if it is absent.`,
    }),
  ),
  after: Type.Optional(text('`next` of the page before, of the same source or list.')),
}

/** The query of `GET /sources/{id}`. */
export const SourcePageQuerySchema = Type.Object(pageFields, { title: 'SourcePageQuery', additionalProperties: false })

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
export interface QuotePlace {
  /** The date in ms since 1970. Absent: sorted by position alone. */
  date?: number
  position: string
  /** The id of the quote. It begins with that of its source. */
  id: string
}

/** A page of a source's quotes: at most `limit`, beginning after a cursor. */
export interface PageQuery {
  limit: number
  after?: QuotePlace
}

/** The parameters of a query, as `URLSearchParams` lists them. */
export type Params = Iterable<readonly [name: string, value: string]>

const parseFields = createParser<Static<typeof SourcePageQuerySchema>>(SourcePageQuerySchema, true)

/** Checks the query of `GET /sources/{id}`. */
export function parsePageQuery(params: Params): Parsed<PageQuery> {
  const query = parseOnce(params, parseFields)
  return query.ok ? parsePage(query.value) : query
}

/** Parses parameters by their schema. Refuses a repeated one, which could mean either value. */
export function parseOnce<Query>(params: Params, parse: (query: unknown) => Parsed<Query>): Parsed<Query> {
  const values = new Map<string, string>()
  const faults: FaultList = { errors: [], total: 0 }
  for (const [name, value] of params) {
    if (values.has(name)) {
      const shown = name.slice(0, SHOWN_NAME)
      addFault(faults, () => ({ pointer: `/${shown}`, code: 'duplicate', message: `${shown} may be given only once.` }))
    }
    values.set(name, value)
  }
  return faults.total === 0 ? parse(Object.fromEntries(values)) : { ok: false, ...faults }
}

const SHOWN_NAME = 200

/** Reads the parameters of a page of quotes. */
export function parsePage({ limit = DEFAULT_OF_PAGE, after }: Static<typeof SourcePageQuerySchema>): Parsed<PageQuery> {
  if (after === undefined) return { ok: true, value: { limit } }
  const place = readPlace(after)
  if (place === undefined) return refuse(fieldFault('after', 'must be `next` of an earlier page.'))
  return { ok: true, value: { limit, after: place } }
}

const PLACE = /^(-?\d{1,15})?~(\d{16}\.\d{6})~([\w-]{48})$/

/** The cursor as `next` and `after` carry it. */
export function quotePlaceText({ date, position, id }: QuotePlace): string {
  return `${date ?? ''}~${position}~${id}`
}

function readPlace(text: string): QuotePlace | undefined {
  const [, date, position, id] = PLACE.exec(text) ?? []
  if (position === undefined || id === undefined) return undefined
  return { ...(date !== undefined && { date: Number(date) }), position, id }
}
