// The bodies that describe the service itself: its limits and whether it can serve. Their schemas, and the types derived from them.
import { type Static, Type } from 'typebox'

const LimitSchema = Type.Object(
  { value: Type.Number(), unit: Type.String(), description: Type.String() },
  { title: 'Limit' },
)

/** The answer of `GET /limits`. */
export const LimitsSchema = Type.Object(
  {
    limits: Type.Record(Type.String(), LimitSchema, {
      description: 'Every bound that a request can meet, by its name.',
    }),
    quota: Type.Record(Type.String(), LimitSchema, { description: 'What a key without limits of its own may post.' }),
    queue: Type.Record(Type.String(), LimitSchema, {
      description: 'What the queue holds before requests are refused.',
    }),
    waitSeconds: LimitSchema,
  },
  { title: 'Limits' },
)

/** The answer of `GET /livez`. */
export const LivenessSchema = Type.Object({ alive: Type.Literal(true) }, { title: 'Liveness' })

const CheckSchema = Type.Object(
  { ok: Type.Boolean(), reason: Type.Optional(Type.String({ description: 'What is wrong.' })) },
  { title: 'Check' },
)

/** The answer of `GET /readyz`. */
export const ReadinessSchema = Type.Object(
  {
    ready: Type.Boolean({ description: 'Whether every check is ok.' }),
    checks: Type.Record(Type.String(), CheckSchema, { description: 'Each thing that the process needs.' }),
  },
  { title: 'Readiness' },
)

export type LimitsAnswer = Static<typeof LimitsSchema>
