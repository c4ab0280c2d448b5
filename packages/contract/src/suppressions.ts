// Suppressions, which `POST /erasures` opens: their list, and the answer to an end.
import type { Static } from 'typebox'
import { DeleteByIdQuerySchema } from './deletions.ts'
import {
  closed,
  moment,
  named,
  next,
  oneOf,
  optional,
  pageParameters,
  Type,
  text,
} from './json-schema.ts'
import { createQueryParser } from './validator.ts'

/** The form of the id of a suppression: the hash of a speaker, and perhaps a service. */
const SUPPRESSION_ID = '^[\\w-]{24}(\\.\\w+)?$'

/** The query of `GET /suppressions`. */
export const SuppressionsQuerySchema = closed('SuppressionsQuery', {
  ...DeleteByIdQuerySchema.properties,
  ...pageParameters({ most: 1_000, byDefault: 100, cursor: SUPPRESSION_ID }),
})

const id = text('The id of the suppression.')

export const SuppressionSchema = named('Suppression', {
  id,
  speaker: text('The keyed hash of the speaker, as in the erasure.'),
  service: optional(text('The service, if the speaker is suppressed only in its threads.')),
  by: text('The id of the key.'),
  createdAt: moment('When it was opened.'),
  erasure: text('The id of the erasure that opened it.'),
})

export const SuppressionListSchema = named('SuppressionList', {
  suppressions: Type.Array(SuppressionSchema),
  next,
})

export const EndedSuppressionSchema = named('EndedSuppression', {
  id,
  outcome: oneOf(['ended', 'absent'], '`absent`: your tenant has no such suppression.'),
})

export type SuppressionsQuery = Static<typeof SuppressionsQuerySchema>
export type SuppressionList = Static<typeof SuppressionListSchema>
export type EndedSuppression = Static<typeof EndedSuppressionSchema>

export const parseSuppressionsQuery = createQueryParser(SuppressionsQuerySchema)
