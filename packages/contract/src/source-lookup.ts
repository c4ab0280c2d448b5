// The look-up of many sources by their names: its schemas, its types, and the parser of its body.
import type { Static } from 'typebox'
import { NOT_AN_OBJECT, type Parsed, refuse } from './faults.ts'
import { isRecord } from './field-values.ts'
import { Type } from './json-schema.ts'
import { parseJson } from './parse-thread.ts'
import { SourcePageSchema } from './source-page.ts'
import { type Limits, SERVICES, WELL_FORMED } from './thread-request.ts'
import { createParser } from './validator.ts'

/** The most sources of one look-up. */
const SOURCES_PER_LOOKUP = 1_000

/** The body of `POST /sources:lookup`. An unknown field is a fault: it would be a condition that is not met. */
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

/** Compiles the parser of a look-up's body. */
export function createLookupParser(limits: Pick<Limits, 'externalId' | 'jsonValues' | 'nesting'>) {
  const parse = createParser<LookupRequest>(LookupRequestSchema(limits))
  return (text: Buffer): Parsed<LookupRequest> => {
    const json = parseJson(text, limits)
    if (!json.ok) return json
    return isRecord(json.value) ? parse(json.value) : refuse(NOT_AN_OBJECT)
  }
}
