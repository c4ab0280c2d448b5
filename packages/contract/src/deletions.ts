// Deletions of stored sources and quotes: the queries of DELETE, the items of `POST
// /sources:delete`, and their results.
import type { Static } from 'typebox'
import { DeletionAnswerSchema, index, RefusedItemSchema } from './answers.ts'
import { closed, count, named, oneOf, optional, Type, text } from './json-schema.ts'
import { type ParsedArray, parseArray, parseJson } from './parse-thread.ts'
import { type InvalidText, type JsonBounds, withExternalId } from './refused-text.ts'
import { type Limits, required, SERVICES, type Service } from './thread-request.ts'
import { refuseField, refuseText } from './validation-errors.ts'
import { createParser, createQueryParser } from './validator.ts'

type NameLimits = Pick<Limits, 'externalId'>

/** The form of the id of a source. */
export const SOURCE_ID_FORM = /^[\w-]{24}$/

const TENANT_LENGTH = 200

const service = oneOf(SERVICES, 'The service of the source.')
const tenant = optional(
  required(TENANT_LENGTH, "The tenant: required with an operator's key, and only with that one."),
)

/** The query of a deletion by id, and of `POST /sources:delete`. */
export const DeleteByIdQuerySchema = closed('DeleteByIdQuery', { tenant })

/** The query of `DELETE /sources`. */
export const DeleteSourceQuerySchema = ({ externalId }: NameLimits) =>
  closed('DeleteSourceQuery', {
    service,
    externalId: required(externalId, "The caller's own identifier of the source."),
    tenant,
  })

/** The query of `DELETE /sources/{id}/quotes`. */
export const DeleteQuoteQuerySchema = ({ externalId }: NameLimits) =>
  closed('DeleteQuoteQuery', {
    externalId: required(externalId, "The caller's own identifier of the quote."),
    tenant,
  })

export const parseDeleteByIdQuery = createQueryParser(DeleteByIdQuerySchema)
export const createDeleteSourceParser = (limits: NameLimits) =>
  createQueryParser(DeleteSourceQuerySchema(limits))
export const createDeleteQuoteParser = (limits: NameLimits) =>
  createQueryParser(DeleteQuoteQuerySchema(limits))

/** A source that a caller names by its id, or by its service and externalId. */
export type SourceToDelete = { id: string } | { service: Service; externalId: string }

/**
 * An item of `POST /sources:delete`. An unknown field is an error: the caller may mean to delete
 * less.
 */
export const SourceReferenceSchema = ({ externalId }: NameLimits) =>
  closed('SourceToDelete', {
    id: optional(text('The id of the source; then the other two are absent.')),
    service: optional(service),
    externalId: optional(required(externalId, 'With `service`: the name of the source.')),
  })

/** The parsed reference to a source, or its validation errors. */
export type ParsedReference = { ok: true; source: SourceToDelete } | InvalidText

const NEITHER = refuseText('required', 'Give either id, or service and externalId.')

/** Makes the parsers of the body of `POST /sources:delete`: of a line, and of an array. */
export function createReferenceParsers(limits: NameLimits & JsonBounds) {
  const parse = createParser(SourceReferenceSchema(limits))
  return {
    line(text: Buffer): ParsedReference {
      const json = parseJson(text, limits)
      return json.ok ? parseReference(json.value) : json
    },
    array: (text: Buffer, maxItems: number): ParsedArray<ParsedReference> =>
      parseArray(parseJson(text, limits), maxItems, parseReference),
  }

  function parseReference(value: unknown): ParsedReference {
    const parsed = parse(value)
    if (!parsed.ok) return withExternalId(parsed, Object(value))
    const { id, service, externalId } = parsed.value
    if (id === undefined && service !== undefined && externalId !== undefined)
      return { ok: true, source: { service, externalId } }
    if (id === undefined || service !== undefined || externalId !== undefined)
      return withExternalId(NEITHER, parsed.value)
    return SOURCE_ID_FORM.test(id)
      ? { ok: true, source: { id } }
      : refuseField('id', 'must be the id of a source, as an answer has it.')
  }
}

export const DeletedItemSchema = named(
  'DeletedItem',
  { index, status: Type.Literal(200), ...DeletionAnswerSchema.properties },
  { description: 'The result of an item that is done.' },
)

const DeletionSummarySchema = named('DeletionSummary', {
  received: count('Items so far.'),
  deleted: count('How many were stored, and are deleted.'),
  absent: count('How many were not stored.'),
  failed: count('Items that are not deleted.'),
})

/** One line of the answer to deletions in lines. The last line is the summary. */
export const DeletionLineSchema = Type.Union([
  DeletedItemSchema,
  RefusedItemSchema,
  named('DeletionSummaryLine', { summary: DeletionSummarySchema }),
])

/** The answer to an array of deletions. */
export const DeletionsAnswerSchema = named('DeletionsAnswer', {
  results: Type.Array(Type.Union([DeletedItemSchema, RefusedItemSchema])),
  summary: DeletionSummarySchema,
})

export type DeletedItem = Static<typeof DeletedItemSchema>
