// The list and the look-up of a tenant's sources: the schemas of requests and answers, and the parsers of requests.
import type { Static } from 'typebox'
import { type Parsed, refuseField } from './faults.ts'
import { parseIsoDate } from './field-values.ts'
import { count, moment, Type } from './json-schema.ts'
import { parseBody } from './parse-thread.ts'
import type { PageQuery } from './source-page.ts'
import { DEFAULT_OF_PAGE, pageFields, parsePage, QUOTE_CURSOR, SourcePageSchema } from './source-page.ts'
import { ISO_DATE, type Limits, NOT_BLANK, SERVICES, type Service, WELL_FORMED } from './thread-request.ts'
import { createParser, createQueryParser, type Params } from './validator.ts'

/** The form of a list's cursor: the date and the id of a source, and a mark of the list that the cursor belongs to. */
export const LIST_CURSOR = /^(\d{15}\/[\w-]{24})~([\w-]{8})$/

/** The query of `GET /sources`: with `externalId` it names one source, without it lists those of the tenant. */
export function SourcesQuerySchema({ externalId }: Pick<Limits, 'externalId'>) {
  return Type.Object(
    {
      service: Type.Optional(
        Type.Enum(SERVICES, { type: 'string', description: 'The service of the source, or of the listed ones.' }),
      ),
      externalId: Type.Optional(
        Type.String({
          maxLength: externalId,
          format: WELL_FORMED,
          pattern: NOT_BLANK,
          description: "The caller's own identifier of the source. Without it, the answer is a list.",
        }),
      ),
      since: Type.Optional(
        Type.String({
          format: ISO_DATE,
          description: 'Of a list: only sources first accepted at this time or later. A date alone will do.',
        }),
      ),
      ...pageFields(`${QUOTE_CURSOR.source}|${LIST_CURSOR.source}`),
    },
    { title: 'SourcesQuery', additionalProperties: false },
  )
}

type SourcesFields = Static<ReturnType<typeof SourcesQuerySchema>>

/** The answer of `GET /sources` without `externalId`. */
export const SourceListSchema = Type.Object(
  {
    sources: Type.Array(
      Type.Object(
        {
          ...SourcePageSchema.properties.source.properties,
          quoteCount: count('Stored quotes of the source.'),
          acceptedAt: moment('When the first request for the source was accepted.'),
        },
        { title: 'ListedSource' },
      ),
    ),
    next: SourcePageSchema.properties.next,
  },
  { title: 'SourceList' },
)

export type SourceList = Static<typeof SourceListSchema>
export type ListedSource = SourceList['sources'][number]

/** A page of a list: at most `limit` sources, beginning after a cursor of the store. */
export interface SourceListQuery {
  service?: Service
  since?: Date
  limit: number
  after?: string
}

/** One source by its name, or a list. */
export type SourcesQuery =
  | { name: { service: Service; externalId: string }; page: PageQuery }
  | { list: SourceListQuery }

/** Makes the parser of the query of `GET /sources`. If `listSources` is `off`, the parser refuses lists. */
export function createSourcesParser(
  limits: Pick<Limits, 'externalId'> & { listSources: 'on' | 'off' },
): (params: Params) => Parsed<SourcesQuery> {
  const schema = SourcesQuerySchema(limits)
  const parseFields = createQueryParser<Static<typeof schema>>(schema)
  return (params) => {
    const query = parseFields(params)
    if (!query.ok) return query
    const { service, externalId, since, ...pageTexts } = query.value
    if (externalId === undefined)
      return limits.listSources === 'on'
        ? { ok: true, value: { list: listOf(query.value) } }
        : refuseField('externalId', NO_LIST, 'required')
    if (service === undefined) return refuseField('service', 'is required beside externalId.', 'required')
    if (since !== undefined) return refuseField('since', 'is for a list: leave out since, or externalId.')
    const page = parsePage(pageTexts)
    return page.ok ? { ok: true, value: { name: { service, externalId }, page: page.value } } : page
  }
}

const NO_LIST = 'is required: this service lists no sources (its setting LIST_SOURCES is off).'

function listOf({ since, limit = DEFAULT_OF_PAGE, ...query }: SourcesFields): SourceListQuery {
  const sinceText = since === undefined ? undefined : parseIsoDate(since)
  return { ...query, limit, ...(sinceText !== undefined && { since: new Date(sinceText) }) }
}

const SOURCES_PER_LOOKUP = 1_000

/** The body of `POST /sources:lookup`. An unknown field is a fault: the caller may mean it as a filter. */
export function LookupRequestSchema({ externalId }: Pick<Limits, 'externalId'>) {
  return Type.Object(
    {
      service: Type.Enum(SERVICES, { type: 'string', description: 'The service of the sources.' }),
      externalIds: Type.Array(Type.String({ maxLength: externalId, format: WELL_FORMED }), {
        maxItems: SOURCES_PER_LOOKUP,
        description: "The caller's own identifiers of the sources.",
      }),
    },
    { title: 'LookupRequest', additionalProperties: false },
  )
}

/** The answer of `POST /sources:lookup`. */
export const LookupAnswerSchema = Type.Object(
  {
    sources: Type.Array(SourcePageSchema.properties.source, {
      description: 'The stored ones, in the order of `externalIds`.',
    }),
  },
  { title: 'LookupAnswer' },
)

type LookupRequest = Static<ReturnType<typeof LookupRequestSchema>>

/** Makes the parser of the body of `POST /sources:lookup`. */
export function createLookupParser(limits: Pick<Limits, 'externalId' | 'jsonValues' | 'nesting'>) {
  const parse = createParser<LookupRequest>(LookupRequestSchema(limits))
  return (text: Buffer): Parsed<LookupRequest> => parseBody(text, limits, parse)
}
