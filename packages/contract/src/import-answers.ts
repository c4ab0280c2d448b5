// The bodies that answer an import and its progress: their schemas, and the types derived from them.
import { type Static, Type } from 'typebox'
import { count, outcome } from './answers.ts'
import { ProblemSchema } from './problem.ts'
import { WarningsSchema } from './warnings.ts'

/** The media type of JSON texts, one a line. */
export const NDJSON = 'application/x-ndjson'

/** Most problems that the progress of one import lists. */
export const PROBLEMS_KEPT = 1_000

const index = count('The place of the item in the import, from 0.')
const externalId = Type.String({ description: 'The externalId of the item.' })
const readExternalId = Type.Optional(Type.String({ description: 'The externalId of the item, if it could be read.' }))

const outcomes = {
  created: count('How many are new.'),
  updated: count('How many were stored before and have changed.'),
  unchanged: count('How many were stored before and are the same.'),
}

const StoredItemSchema = Type.Object(
  {
    index,
    externalId,
    status: Type.Literal(200),
    outcome,
    id: Type.String({ description: 'Identifier of the stored source. It never changes.' }),
    wordCount: count('Words in all stored quotes of the source.'),
    quotes: Type.Object(outcomes, { description: "The outcomes of the item's quotes." }),
    warnings: Type.Optional(WarningsSchema),
  },
  { title: 'StoredItem', description: 'The result of an item that is stored.' },
)

const line = Type.Optional(Type.Integer({ minimum: 1, description: 'The line of the item, blank lines included.' }))

const RefusedItemSchema = Type.Object(
  {
    index,
    line,
    externalId: readExternalId,
    status: Type.Integer({ minimum: 400, maximum: 599, description: 'The status of the problem.' }),
    problem: ProblemSchema,
  },
  {
    title: 'RefusedItem',
    description: 'The result of an item that is not stored, with the problem that POST /sources would have answered.',
  },
)

const ImportSummarySchema = Type.Object(
  { received: count('Items so far.'), ...outcomes, failed: count('Items that are not stored.') },
  { title: 'ImportSummary' },
)

/** One line of the answer to an import in lines. The last line is the summary. */
export const ImportLineSchema = Type.Union([
  StoredItemSchema,
  RefusedItemSchema,
  Type.Object({ summary: ImportSummarySchema }, { title: 'SummaryLine' }),
])

/** The answer to an import that is an array. */
export const ImportAnswerSchema = Type.Object(
  { results: Type.Array(Type.Union([StoredItemSchema, RefusedItemSchema])), summary: ImportSummarySchema },
  { title: 'ImportAnswer' },
)

/** The answer of `GET /batches/{id}`. */
export const ImportProgressSchema = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    state: Type.Enum(['active', 'completed'], { type: 'string' }),
    summary: ImportSummarySchema,
    problems: Type.Array(Type.Object({ index, line, externalId: readExternalId, problem: ProblemSchema }), {
      maxItems: PROBLEMS_KEPT,
      description: 'The first problems, up to one MiB, each with at most five of its errors.',
    }),
  },
  { title: 'ImportProgress' },
)

export type StoredItem = Static<typeof StoredItemSchema>
export type ImportSummary = Static<typeof ImportSummarySchema>
export type ImportAnswer = Static<typeof ImportAnswerSchema>
export type ImportProgressAnswer = Static<typeof ImportProgressSchema>
