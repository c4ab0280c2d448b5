// A stored source as callers read it, in pages of its quotes: schemas, types, and the parser of the query.
import { type Static, Type } from 'typebox'
import { QuoteAnswerSchema, SourceAnswerSchema } from './answers.ts'
import { addFault, type FaultList, fieldFault, type Parsed, validationFaults } from './faults.ts'
import { createValidator } from './parse-thread.ts'
import type { Limits } from './thread-request.ts'
import { SERVICES, type Service, WELL_FORMED } from './thread-request.ts'

/** The most quotes of one page, and their number without `limit`. */
const QUOTES_PER_PAGE = 1_000
const DEFAULT_QUOTES = 100

const pageFields = {
  limit: Type.Optional(
    Type.String({
      description: `Most quotes of this page, from 1 to ${QUOTES_PER_PAGE}; ${DEFAULT_QUOTES} if it is absent.`,
    }),
  ),
  after: Type.Optional(Type.String({ description: '`next` of the page before, of the same source.' })),
}

/** The query of `GET /sources/{id}`. */
export const SourcePageQuerySchema = Type.Object(pageFields, { title: 'SourcePageQuery', additionalProperties: false })

/** The query of `GET /sources`, which names a source as its caller does. */
export function NamedSourceQuerySchema({ externalId }: Pick<Limits, 'externalId'>) {
  return Type.Object(
    {
      service: Type.Enum(SERVICES, { type: 'string', description: 'The service of the source.' }),
      externalId: Type.String({
        maxLength: externalId,
        format: WELL_FORMED,
        pattern: '\\S',
        description: "The caller's own identifier of the source.",
      }),
      ...pageFields,
    },
    { title: 'NamedSourceQuery', additionalProperties: false },
  )
}

const { outcome: _ofSource, ...sourceFields } = SourceAnswerSchema.properties
const { outcome: _ofQuote, ...quoteFields } = QuoteAnswerSchema.properties

/** The answer of `GET /sources/{id}` and of `GET /sources`. */
export const SourcePageSchema = Type.Object(
  {
    source: Type.Object(sourceFields, { title: 'ReadSource' }),
    quotes: Type.Array(
      Type.Object(
        {
          ...quoteFields,
          position: Type.String({
            description: 'Sorts the quotes of a source in the order in which they were first given.',
          }),
        },
        { title: 'ReadQuote' },
      ),
    ),
    next: Type.Optional(Type.String({ description: 'Give it as `after` for the next page. Absent on the last one.' })),
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

/** A page of the source that the caller names. */
export type NamedPageQuery = PageQuery & { service: Service; externalId: string }

type Params = Iterable<readonly [name: string, value: string]>

const validator = createValidator()
const isPageQuery = validator.compile<Static<typeof SourcePageQuerySchema>>(SourcePageQuerySchema)

/** Checks the query of `GET /sources/{id}`. */
export function parsePageQuery(params: Params): Parsed<PageQuery> {
  const query = onlyOnce(params)
  if (!query.ok) return query
  return isPageQuery(query.value) ? parsePage(query.value) : validationFaults(isPageQuery.errors)
}

/** Compiles the check of the query of `GET /sources`. */
export function createNamedPageParser(limits: Pick<Limits, 'externalId'>): (params: Params) => Parsed<NamedPageQuery> {
  const schema = NamedSourceQuerySchema(limits)
  const isNamed = validator.compile<Static<typeof schema>>(schema)
  return (params) => {
    const query = onlyOnce(params)
    if (!query.ok) return query
    if (!isNamed(query.value)) return validationFaults(isNamed.errors)
    const { service, externalId } = query.value
    const page = parsePage(query.value)
    return page.ok ? { ok: true, value: { ...page.value, service, externalId } } : page
  }
}

/** Refuses a repeated parameter, which could mean either value. */
function onlyOnce(params: Params): Parsed<Record<string, string>> {
  const values = new Map<string, string>()
  const faults: FaultList = { errors: [], total: 0 }
  for (const [name, value] of params) {
    if (values.has(name)) {
      const shown = name.slice(0, SHOWN_NAME)
      addFault(faults, () => ({ pointer: `/${shown}`, code: 'duplicate', message: `${shown} may be given only once.` }))
    }
    values.set(name, value)
  }
  return faults.total === 0 ? { ok: true, value: Object.fromEntries(values) } : { ok: false, ...faults }
}

const SHOWN_NAME = 200

function parsePage({ limit: limitText, after }: Static<typeof SourcePageQuerySchema>): Parsed<PageQuery> {
  const faults: FaultList = { errors: [], total: 0 }
  const limit = limitText === undefined ? DEFAULT_QUOTES : wholeNumber(limitText)
  if (limit < 1 || limit > QUOTES_PER_PAGE)
    addFault(faults, () => fieldFault('limit', `must be a whole number from 1 to ${QUOTES_PER_PAGE}.`))
  const place = after === undefined ? undefined : readPlace(after)
  if (after !== undefined && place === undefined)
    addFault(faults, () => fieldFault('after', 'must be `next` of an earlier page.'))
  if (faults.total > 0) return { ok: false, ...faults }
  return { ok: true, value: { limit, ...(place !== undefined && { after: place }) } }
}

function wholeNumber(text: string): number {
  return /^\d{1,6}$/.test(text) ? Number(text) : 0
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
