// The bodies of successful answers: their schemas, the types derived from them, and the 202 answer
// itself.
import type { Static, TOptional, TSchema, TUnsafe } from 'typebox'
import { effectiveScore, type Votes } from './field-values.ts'
import { count, moment, named, oneOf, optional, Type, text } from './json-schema.ts'
import { WarningsSchema } from './leniency.ts'
import { ProblemSchema } from './problem.ts'
import { DEFAULT_LIMITS, SERVICES, type Thread, ThreadRequestSchema } from './thread-request.ts'

export const MESSAGE = 'New source received successfully.'

/** The `status` of every stored source. */
export const STORED_STATUS = 'TRANSCRIBED' as const

const OUTCOMES = ['created', 'updated', 'unchanged', 'deleted'] as const
const EFFECT =
  'The effect of this request on the document. `deleted`: none, because a deletion that was accepted later was stored before.'
const outcome = oneOf(OUTCOMES, EFFECT)
const ofQuote = oneOf(
  [...OUTCOMES, 'suppressed'],
  `${EFFECT} \`suppressed\`: it is stored as \`[erased]\`, because its speaker is suppressed.`,
)

type Answered<P> = { [Name in keyof P]: TOptional<TUnsafe<NonNullable<StaticOf<P[Name]>>>> }
type StaticOf<S> = S extends TSchema ? Static<S> : never

/**
 * Makes the schemas of an answer from a request's optional fields: of the same type, but never
 * null, and without bounds.
 */
function answered<P extends Readonly<Record<string, TSchema>>>(fields: P): Answered<P> {
  const ofAnswer = (field: TSchema) =>
    optional(Type.Unsafe({ type: [Reflect.get(field, 'type')].flat()[0] }))
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, ofAnswer(field)]),
  ) as Answered<P>
}

const request = ThreadRequestSchema(DEFAULT_LIMITS).properties
const score = optional(
  Type.Number({ description: 'The one that was sent, else upVotes minus downVotes.' }),
)

const {
  title,
  description,
  externalId: _id,
  service: _service,
  createdAt,
  quotes,
  ...sourceFields
} = request
const sentSource = {
  title: Type.String(),
  description: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    description: 'Null if it is absent.',
  }),
  externalId: Type.String(),
  service: oneOf(SERVICES),
  ...answered(sourceFields),
  score,
}

const {
  username,
  text: _text,
  createdAt: _at,
  exportedId: _exported,
  ...quoteFields
} = quotes.items.properties
const sentQuote = {
  text: Type.String(),
  ...answered(quoteFields),
  speaker: optional(text('Sent as speaker or as username.')),
  score,
  replyingTo: optional(text('The externalId of the quote that this one replies to.')),
}

export const SourceAnswerSchema = named('StoredSource', {
  id: text('Identifier of the stored source. It never changes.'),
  ...sentSource,
  wordCount: count('Words in all stored quotes of the source.'),
  status: Type.Literal(STORED_STATUS),
  createdAt: moment('The date that was sent, else when the source was first accepted.'),
  outcome,
})

export const QuoteAnswerSchema = named('StoredQuote', {
  id: text('Identifier of the stored quote. It never changes.'),
  ...sentQuote,
  createdAt: optional(moment('The date that was sent.')),
  outcome: ofQuote,
})

/** The 200 answer: the source and the quotes of the request, as stored. */
export const ThreadAnswerSchema = named('StoredThread', {
  message: Type.Literal(MESSAGE),
  source: SourceAnswerSchema,
  quotes: Type.Array(QuoteAnswerSchema),
  warnings: optional(WarningsSchema),
})

/** The 202 answer: the normalised content of the request. */
export const AcceptedAnswerSchema = named('AcceptedThread', {
  message: Type.Literal(MESSAGE),
  source: Type.Object(sentSource),
  quotes: Type.Array(Type.Object(sentQuote)),
  warnings: optional(WarningsSchema),
})

/** The 202 answer to a deletion. */
export const AcceptedDeletionSchema = named('AcceptedDeletion', {
  id: text('Identifier of the source.'),
})

/** The 200 answer to a deletion. */
export const DeletionAnswerSchema = named('Deletion', {
  ...AcceptedDeletionSchema.properties,
  outcome: oneOf(['deleted', 'absent'], '`absent`: your tenant has nothing that it names.'),
  quotes: count('The quotes that were removed.'),
})

export const JobAnswerSchema = named('Job', {
  id: Type.String({ format: 'uuid' }),
  state: oneOf(
    ['waiting', 'active', 'completed', 'failed'],
    'waiting includes a job between two attempts.',
  ),
  changedAt: moment('When the job entered this state.'),
  attempts: count('Attempts made so far.'),
  result: optional(ThreadAnswerSchema),
  deletion: optional(DeletionAnswerSchema),
  problem: optional(ProblemSchema),
})

export type Outcome = Static<typeof outcome>
export type QuoteOutcome = Static<typeof ofQuote>
export type JobState = JobAnswer['state']
export type SourceAnswer = Static<typeof SourceAnswerSchema>
export type QuoteAnswer = Static<typeof QuoteAnswerSchema>
export type ThreadAnswer = Static<typeof ThreadAnswerSchema>
export type AcceptedAnswer = Static<typeof AcceptedAnswerSchema>
export type DeletionAnswer = Static<typeof DeletionAnswerSchema>
export type JobAnswer = Static<typeof JobAnswerSchema>

/**
 * Builds the answer for a caller that does not wait: the normalised thread, without dates and
 * values that the store adds.
 */
export function acceptedAnswer({ source, quotes }: Thread): AcceptedAnswer {
  const sent = asSent(source)
  return {
    message: MESSAGE,
    source: { ...sent, description: sent.description ?? null },
    quotes: quotes.map(asSent),
  }
}

/**
 * Returns the fields without the date and the exported id, which a 202 never has, and with a score:
 * the sent one or, if none was sent, the score from the votes.
 */
function asSent<T extends Votes & { createdAt?: string; exportedId?: string }>(sent: T) {
  const { createdAt: _, exportedId: _exported, ...fields } = sent
  const score = effectiveScore(sent)
  return { ...fields, ...(score !== undefined && { score }) }
}

/** The media type of a sequence of JSON texts, one on each line. */
export const NDJSON = 'application/x-ndjson'

/** The progress of an import lists at most this number of problems. */
export const PROBLEMS_KEPT = 1_000

export const index = count('The place of the item in the import, from 0.')
const externalId = text('The externalId of the item.')
const readExternalId = optional(text('The externalId of the item, if it could be read.'))

/** Numbers of documents, by their outcome. */
export const outcomeCounts = {
  created: count('How many are new.'),
  updated: count('How many were stored before and have changed.'),
  unchanged: count('How many were stored before and are the same.'),
}

const StoredItemSchema = named(
  'StoredItem',
  {
    index,
    externalId,
    status: Type.Literal(200),
    outcome,
    id: text('Identifier of the stored source. It never changes.'),
    wordCount: count('Words in all stored quotes of the source.'),
    quotes: Type.Object(
      { ...outcomeCounts, suppressed: optional(count('How many are stored as `[erased]`.')) },
      { description: "The outcomes of the item's quotes." },
    ),
    warnings: optional(WarningsSchema),
  },
  { description: 'The result of an item that is stored.' },
)

const line = optional(
  Type.Integer({ minimum: 1, description: 'The line of the item, blank lines included.' }),
)

export const RefusedItemSchema = named(
  'RefusedItem',
  {
    index,
    line,
    externalId: readExternalId,
    status: Type.Integer({ minimum: 400, maximum: 599, description: 'The status of the problem.' }),
    problem: ProblemSchema,
  },
  {
    description:
      'The result of an item that is not stored, with the problem that POST /sources would have answered.',
  },
)

const ImportSummarySchema = named('ImportSummary', {
  received: count('Items so far.'),
  ...outcomeCounts,
  failed: count('Items that are not stored.'),
})

/** A line of the answer to an import in lines. The last line is the summary. */
export const ImportLineSchema = Type.Union([
  StoredItemSchema,
  RefusedItemSchema,
  named('SummaryLine', { summary: ImportSummarySchema }),
])

/** The answer to an import that is an array. */
export const ImportAnswerSchema = named('ImportAnswer', {
  results: Type.Array(Type.Union([StoredItemSchema, RefusedItemSchema])),
  summary: ImportSummarySchema,
})

export const ImportProgressSchema = named('ImportProgress', {
  id: Type.String({ format: 'uuid' }),
  state: oneOf(
    ['active', 'completed', 'stopped'],
    '`stopped`: no request of it is under way, and its last one broke off.',
  ),
  summary: ImportSummarySchema,
  waitsFor: optional(
    text('The title of the problem for which no more of it is taken in at the moment.'),
  ),
  problems: Type.Array(
    Type.Object({ index, line, externalId: readExternalId, problem: ProblemSchema }),
    {
      maxItems: PROBLEMS_KEPT,
      description: 'The first problems, up to one MiB, each with at most five of its errors.',
    },
  ),
})

export type StoredItem = Static<typeof StoredItemSchema>
export type ImportSummary = Static<typeof ImportSummarySchema>
export type ImportProgressAnswer = Static<typeof ImportProgressSchema>

const LimitSchema = named('Limit', {
  value: Type.Number(),
  unit: Type.String(),
  description: Type.String(),
})

export const LimitsSchema = named('Limits', {
  limits: Type.Record(Type.String(), LimitSchema, {
    description: 'Every bound of a request, by its name.',
  }),
  quota: Type.Record(Type.String(), LimitSchema, {
    description: 'What a key without limits of its own may post.',
  }),
  queue: Type.Record(Type.String(), LimitSchema, {
    description: 'What the queue holds, and no more.',
  }),
  waitSeconds: LimitSchema,
  tenant: optional(text('The tenant of the key, if the request has the key of an importer.')),
})

export const LivenessSchema = named('Liveness', { alive: Type.Literal(true) })

const CheckSchema = named('Check', { ok: Type.Boolean(), reason: optional(text('What is wrong.')) })

export const ReadinessSchema = named('Readiness', {
  ready: Type.Boolean({ description: 'Whether every check is ok.' }),
  checks: Type.Record(Type.String(), CheckSchema, {
    description: 'Each thing that the process needs.',
  }),
})

export type LimitsAnswer = Static<typeof LimitsSchema>
