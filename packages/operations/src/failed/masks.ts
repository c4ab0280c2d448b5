// Reduces what operators see to what viewers see: ids, and reasons without values. If a mask
// forgets a field of `Hidden`, it does not compile.
import type { FailedJobGroups, FindAnswer, Operation, Status } from '@sluice/contract'
import type { FoundImport } from '@sluice/queue'
import { type MaskedReason, reasonGroupOf, VARIES } from './reasons.ts'

/**
 * What viewers see instead of each field that may quote values, wherever a result has such a field.
 */
export interface Hidden {
  reason: MaskedReason
  payload: null
  stack: never[]
  detail: ''
  errors: never[]
  warnings: never[]
}

/** A result without values. */
type Masked<Value> = {
  [Name in keyof Value]: Name extends keyof Hidden ? Hidden[Name] : Masked<Value[Name]>
}

/** Reduces what operators see to what viewers see. */
export type Mask<Value> = (found: Value) => Value & Masked<Value>

/** Masks the reason of a job, a group, an attempt, a thread or a hit. */
export function masked<Value extends { reason?: string }>(found: Value) {
  return { ...found, ...(found.reason !== undefined && { reason: reasonGroupOf(found.reason) }) }
}

export const maskGroups: Mask<FailedJobGroups> = (found) => ({
  ...found,
  groups: found.groups.map(masked),
})

export const maskFound: Mask<FindAnswer> = (found) => ({ ...found, hits: found.hits.map(masked) })

export const maskStatus: Mask<Status> = ({ storeAway, ...status }) => ({
  ...status,
  ...(storeAway && { storeAway: masked(storeAway) }),
})

const NO_PAYLOAD: Pick<Hidden, 'stack' | 'payload'> = { stack: [], payload: null }

/** Shows neither the stacks nor the payload of a job. */
export const withoutPayload = <Job extends object>(job: Job) => ({ ...job, ...NO_PAYLOAD })

/** The reason in a filter was written by a person, so all of it is masked. */
export const maskOperation: Mask<Operation> = ({ filter, ...operation }) => {
  if (filter === undefined) return operation
  const { reason, ...fields } = filter
  return { ...operation, filter: { ...fields, ...(reason !== undefined && { reason: VARIES }) } }
}

const NO_DETAILS: Pick<Hidden, 'detail' | 'errors' | 'warnings'> = {
  detail: '',
  errors: [],
  warnings: [],
}

export const maskImport: Mask<FoundImport> = ({ problems, ...found }) => ({
  ...found,
  problems: problems.map(({ refused, ...item }) =>
    refused ? { ...item, refused: { ...refused, ...NO_DETAILS } } : item,
  ),
})
