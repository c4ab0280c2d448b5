// The records of deletions, by which they are applied again after a backup was restored. They have
// no texts, and only the names of tenants.
import type { Static } from 'typebox'
import { oneOf, optional, Type } from './json-schema.ts'
import { SERVICES } from './thread-request.ts'

const about = {
  /** The id of the job or of the operation. */
  id: Type.String(),
  /**
   * Everything that was accepted up to this stamp is deleted. The last record of an operation may
   * have a later stamp than its first.
   */
  stamp: Type.Integer(),
  /** The id of the key. */
  by: optional(Type.String()),
  /** Present once an operation has ended: the number of threads, or of quotes of an erasure. */
  done: optional(Type.Integer()),
}
const tenant = Type.String()

const deletes = Type.Array(
  Type.Object({ sourceId: Type.String(), quoteIds: optional(Type.Array(Type.String())) }),
)

/** The rules and the default of retention, and when it looked for what was due. */
const rules = Type.Array(
  Type.Object({
    tenant,
    service: optional(Type.String()),
    /** Null: the threads are kept, also if there is a default. */
    seconds: Type.Unsafe<number | null>({ type: ['number', 'null'] }),
  }),
)
const at = Type.Number()

const erases = {
  service: optional(oneOf(SERVICES)),
  /** A hash of the speaker with this key, which MongoDB's backup may lack. */
  speaker: Type.String(),
  key: Type.String(),
  mode: oneOf(['redact', 'remove']),
}

/** The id of a suppression, and what it is: absent once it has ended. */
const suppression = {
  name: Type.String(),
  opened: optional(
    Type.Object({
      service: optional(Type.String()),
      speaker: Type.String(),
      key: Type.String(),
      erasure: Type.String(),
    }),
  ),
}

export const DeletionRecordSchema = Type.Union([
  Type.Object({ kind: Type.Literal('deletion'), ...about, tenant, deletes }),
  Type.Object({ kind: Type.Literal('tenant'), ...about, tenant }),
  Type.Object({ kind: Type.Literal('retention'), ...about, rules, days: Type.Number(), at }),
  Type.Object({ kind: Type.Literal('erasure'), ...about, tenant, ...erases }),
  Type.Object({ kind: Type.Literal('suppression'), ...about, tenant, ...suppression }),
])

export type DeletionRecord = Static<typeof DeletionRecordSchema>
