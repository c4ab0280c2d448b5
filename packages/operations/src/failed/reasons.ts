// Removes quoted values from the reason of a failure: to group failures, and for viewers.
import { hash } from 'node:crypto'
import type { FailedJobGroups, Found, Operation, Status } from '@sluice/contract'
import type { FoundImport } from '@sluice/queue'

/** A reason without values. Only this file makes one. */
type MaskedReason = string & { readonly isMasked: true }

/** What viewers see of each field that can quote values, wherever a result has the field. */
export interface Hidden {
  reason: MaskedReason
  payload: null
  stack: never[]
  detail: ''
  errors: never[]
  warnings: never[]
}

/** A result without values. If a mask leaves one of the fields of `Hidden` as it is, the mask does not compile. */
type Masked<Found> = { [Name in keyof Found]: Name extends keyof Hidden ? Hidden[Name] : Masked<Found[Name]> }

/** The most characters of a reason that is shown: a reason may quote a whole document. */
export const SHOWN_REASON = 2_000

const VARIES = '…' as MaskedReason
/** Matches a text in JSON. */
export const TEXT = /"(?:[^"\\]|\\[\s\S])*"/.source
/**
 * Matches a validation rule in an error of MongoDB: JSON of at most three levels of objects. A rule with more levels is
 * masked like any other text.
 */
export const RULE = [1, 2, 3].reduce((inner) => `\\{(?:[^{}"]|${TEXT}${inner && `|${inner}`})*\\}`, '')
const NAME = /(?<=[{,])"[$\w.]+"(?=:)|(?<="(?:operator|property)Name":)"[$\w.]+"/.source
const QUOTED = /"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)|(?<!\w)'[^']*(?:'|$)|`[^`]*(?:`|$)/.source
/** Matches names in JSON and MongoDB's whole rules (captured), quoted texts (also cut ones), and words, numbers and ids. */
const QUOTED_OR_WORD = new RegExp(String.raw`(${NAME}|(?<="specifiedAs":)${RULE})|${QUOTED}|[\w.:/-]+`, 'g')
/** The reason of a job of several threads begins with the name of the failed thread, which is no part of the cause. */
export const THREAD = /^threads\[\d+\] "(?:[^"\\]|\\[\s\S])*": /
/** Codes of errors, such as `E11000`. */
const ERROR_CODE = /^[A-Z]{1,3}\d{1,6}$/

/** Returns a reason without its thread's name, quoted texts, numbers and ids: equal for failures of one cause. */
export function reasonGroupOf(reason: string): MaskedReason {
  const group = reason
    .replace(THREAD, '')
    .slice(0, SHOWN_REASON)
    .replace(QUOTED_OR_WORD, (found, name?: string) => {
      const isSame = /^[\w.:/-]/.test(found) && (!/\d/.test(found) || ERROR_CODE.test(found))
      return name || isSame ? found : VARIES
    })
  return group as MaskedReason
}

/** Returns the short id of a group, which people can type. */
export function groupIdOf(reasonGroup: string): string {
  return hash('sha256', reasonGroup).slice(0, 8)
}

/** Reduces what operators see to what viewers see. */
export type Mask<Found> = (found: Found) => Found & Masked<Found>

/** Masks the reason of a job, a group, a try, a thread or a hit. */
export function masked<Found extends { reason?: string }>(found: Found) {
  return { ...found, ...(found.reason !== undefined && { reason: reasonGroupOf(found.reason) }) }
}

export const maskGroups: Mask<FailedJobGroups> = (found) => ({ ...found, groups: found.groups.map(masked) })

export const maskFound: Mask<Found> = (found) => ({ ...found, hits: found.hits.map(masked) })

export const maskStatus: Mask<Status> = ({ storeAway, ...status }) => ({
  ...status,
  ...(storeAway && { storeAway: masked(storeAway) }),
})

const NO_PAYLOAD: Pick<Hidden, 'stack' | 'payload'> = { stack: [], payload: null }

/** Shows neither the stacks nor the payload of a job. */
export const withoutPayload = <Job extends object>(job: Job) => ({ ...job, ...NO_PAYLOAD })

/** A person wrote the reason of a filter, so all of it is masked. */
export const maskOperation: Mask<Operation> = ({ filter, ...operation }) => {
  if (filter === undefined) return operation
  const { reason, ...fields } = filter
  return { ...operation, filter: { ...fields, ...(reason !== undefined && { reason: VARIES }) } }
}

const NO_DETAILS: Pick<Hidden, 'detail' | 'errors' | 'warnings'> = { detail: '', errors: [], warnings: [] }

export const maskImport: Mask<FoundImport> = ({ problems, ...found }) => ({
  ...found,
  problems: problems.map(({ refused, ...item }) =>
    refused ? { ...item, refused: { ...refused, ...NO_DETAILS } } : item,
  ),
})
