// The records of deletions, by which they are applied again after a backup was restored. They have
// no texts, and no names but those of tenants.
import type { Static } from 'typebox'
import { optional, Type } from './json-schema.ts'

const about = {
  /** The id of the job or of the operation. */
  id: Type.String(),
  /** What was accepted up to this stamp was removed. Higher once an operation has ended. */
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

export const DeletionRecordSchema = Type.Union([
  Type.Object({ kind: Type.Literal('deletion'), ...about, tenant, deletes }),
  Type.Object({ kind: Type.Literal('tenant'), ...about, tenant }),
])

export type DeletionRecord = Static<typeof DeletionRecordSchema>
