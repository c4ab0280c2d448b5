// The bodies of successful answers: their schemas, the types derived from them, and the 202 answer itself.
import { type Static, Type } from 'typebox'
import { ProblemSchema } from './problem.ts'
import { effectiveScore, type Thread, type Votes } from './thread.ts'
import { SERVICES } from './thread-request.ts'
import { WarningsSchema } from './warnings.ts'

/** The message of every accepted request. */
export const MESSAGE = 'New source received successfully.'

/** The one state of a stored source. */
export const STORED_STATUS = 'TRANSCRIBED'

const OUTCOMES = ['created', 'updated', 'unchanged'] as const
const JOB_STATES = ['waiting', 'active', 'completed', 'failed'] as const

const text = (description?: string) => Type.String(description === undefined ? {} : { description })
/** A date and time of ISO 8601. */
export const moment = (description: string) => Type.String({ format: 'date-time', description })
/** A number of things. */
export const count = (description: string) => Type.Integer({ minimum: 0, description })
/** The outcome of a request for one document. */
export const outcome = Type.Enum(OUTCOMES, {
  type: 'string',
  description: 'The effect of this request on the document.',
})

const votes = {
  upVotes: Type.Optional(Type.Number()),
  downVotes: Type.Optional(Type.Number()),
  score: Type.Optional(Type.Number({ description: 'The one that was sent, else upVotes minus downVotes.' })),
}

const sentSource = {
  title: text(),
  description: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Null if it is absent.' }),
  url: Type.Optional(text()),
  externalId: text(),
  service: Type.Enum(SERVICES, { type: 'string' }),
  channelName: Type.Optional(text()),
  channelId: Type.Optional(text()),
  ...votes,
}

const sentQuote = {
  externalId: Type.Optional(text()),
  text: text(),
  speaker: Type.Optional(text('Sent as speaker or as username.')),
  ...votes,
  replyingTo: Type.Optional(text('The externalId of the quote that this one replies to.')),
}

export const SourceAnswerSchema = Type.Object(
  {
    id: text('Identifier of the stored source. It never changes.'),
    ...sentSource,
    wordCount: count('Words in all stored quotes of the source.'),
    status: Type.Literal(STORED_STATUS),
    createdAt: moment('The date that was sent, else when the source was first accepted.'),
    outcome,
  },
  { title: 'StoredSource' },
)

export const QuoteAnswerSchema = Type.Object(
  {
    id: text('Identifier of the stored quote. It never changes.'),
    ...sentQuote,
    createdAt: Type.Optional(moment('The date that was sent.')),
    outcome,
  },
  { title: 'StoredQuote' },
)

/** The 200 answer: the source and the quotes of the request, as stored. */
export const ThreadAnswerSchema = Type.Object(
  {
    message: Type.Literal(MESSAGE),
    source: SourceAnswerSchema,
    quotes: Type.Array(QuoteAnswerSchema),
    warnings: Type.Optional(WarningsSchema),
  },
  { title: 'StoredThread' },
)

/** The 202 answer: what was sent, normalised. */
export const AcceptedAnswerSchema = Type.Object(
  {
    message: Type.Literal(MESSAGE),
    source: Type.Object(sentSource),
    quotes: Type.Array(Type.Object(sentQuote)),
    warnings: Type.Optional(WarningsSchema),
  },
  { title: 'AcceptedThread' },
)

/** The answer of `GET /jobs/{id}`. */
export const JobAnswerSchema = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    state: Type.Enum(JOB_STATES, { type: 'string', description: 'waiting includes a job between two tries.' }),
    changedAt: moment('When the job entered this state.'),
    attempts: count('Tries made so far.'),
    result: Type.Optional(ThreadAnswerSchema),
    problem: Type.Optional(ProblemSchema),
  },
  { title: 'Job' },
)

export type Outcome = (typeof OUTCOMES)[number]
export type JobState = (typeof JOB_STATES)[number]
export type SourceAnswer = Static<typeof SourceAnswerSchema>
export type QuoteAnswer = Static<typeof QuoteAnswerSchema>
export type ThreadAnswer = Static<typeof ThreadAnswerSchema>
export type AcceptedAnswer = Static<typeof AcceptedAnswerSchema>
export type JobAnswer = Static<typeof JobAnswerSchema>

/** Builds the answer for a caller that does not wait: the thread as sent, without the values that only the store knows. */
export function acceptedAnswer({ source, quotes }: Thread): AcceptedAnswer {
  const sent = withoutDate(source)
  return {
    message: MESSAGE,
    source: { ...sent, description: sent.description ?? null, ...shownScore(source) },
    quotes: quotes.map((quote) => ({ ...withoutDate(quote), ...shownScore(quote) })),
  }
}

function withoutDate<T extends { createdAt?: string }>({ createdAt: _, ...fields }: T): Omit<T, 'createdAt'> {
  return fields
}

function shownScore(votes: Votes): { score?: number } {
  const score = effectiveScore(votes)
  return score === undefined ? {} : { score }
}
