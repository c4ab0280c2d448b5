// The schemas of every answer, closed: a member that a schema lacks is an error.
import {
  AcceptedAnswerSchema,
  FailedJobPageSchema,
  FailedJobSchema,
  JobAnswerSchema,
  OperationSchema,
  ProblemSchema,
  SourcePageSchema,
  ThreadAnswerSchema,
} from '@sluice/contract'
import { Ajv, type ValidateFunction } from 'ajv'
import formats from 'ajv-formats'

const validator = formats.default(new Ajv({ allErrors: true, allowUnionTypes: true }))

/** Says what is wrong with a value, or nothing. */
export type Check = (value: unknown) => string | undefined

const count = { type: 'integer', minimum: 0 }
const outcomes = { created: count, updated: count, unchanged: count }
const counts = { ...outcomes, failed: count }
const text = { type: 'string' }
const object = (properties: object, required = Object.keys(properties)) => ({ type: 'object', properties, required })
const limit = object({ value: { type: 'number' }, unit: text, description: text })

const storedItem = object({
  index: count,
  externalId: text,
  status: { const: 200 },
  outcome: { enum: ['created', 'updated', 'unchanged'] },
  id: text,
  wordCount: count,
  quotes: object(outcomes),
})
const refusedItem = object({ index: count, externalId: text, status: count, problem: ProblemSchema }, [
  'index',
  'status',
  'problem',
])
const item = { anyOf: [storedItem, refusedItem] }
const summary = object({ received: count, ...counts })
const check = object({ ok: { type: 'boolean' }, reason: text }, ['ok'])

/** Checks the body of an answer of 400 and above. */
export const isProblem = checkOf(ProblemSchema)
/** Checks the body of a 200 or 202 to `/sources`. */
export const isStoredThreadOrPage = checkOf({ anyOf: [ThreadAnswerSchema, SourcePageSchema] })
export const isSourcePage = checkOf(SourcePageSchema)
export const isAcceptedThread = checkOf(AcceptedAnswerSchema)
export const isJob = checkOf(JobAnswerSchema)
/** Checks what operators get of failed jobs. */
export const isFailedJobPage = checkOf(FailedJobPageSchema)
export const isFailedJob = checkOf(FailedJobSchema)
export const isOperation = checkOf(OperationSchema)
/** Checks one line of an import's answer, its last line, and the whole answer to an array. */
export const isItem = checkOf(item)
export const isSummaryLine = checkOf(object({ summary }))
export const isImportAnswer = checkOf(object({ results: { type: 'array', items: item }, summary }))
/** Checks the progress of an import. */
export const isImport = checkOf(
  object({
    id: { type: 'string', format: 'uuid' },
    state: { enum: ['active', 'completed'] },
    summary,
    problems: {
      type: 'array',
      items: object({ index: count, externalId: text, problem: ProblemSchema }, ['index', 'problem']),
    },
  }),
)
const bounds = { type: 'object', additionalProperties: limit }
export const isLimits = checkOf(object({ limits: bounds, quota: bounds, queue: bounds, waitSeconds: limit }))
export const isAlive = checkOf(object({ alive: { const: true } }))
export const isReady = checkOf(
  object({ ready: { const: true }, checks: { type: 'object', additionalProperties: check } }, ['ready']),
)

function checkOf(schema: object): Check {
  const isValid: ValidateFunction = validator.compile(Object(closed(schema)))
  return (value) => (isValid(value) ? undefined : validator.errorsText(isValid.errors))
}

/** Closes every object of a schema that does not say itself what else it may have. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]))
  return copy.type === 'object' ? { additionalProperties: false, ...copy } : copy
}
