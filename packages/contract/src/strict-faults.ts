// Finds the faults of strict handling. Otherwise, unknown fields are ignored, quotes with one `externalId` are merged,
// and a `replyingTo` without its quote is stored.
import { addFault, type FaultList, LONGEST_NAMED_FIELD, pointerTo } from './faults.ts'
import type { FieldNames } from './thread-request.ts'
import { fieldsAt, type SentFields } from './warnings.ts'

type Fields = Record<string, unknown>

/**
 * Adds faults for unknown fields, for quotes that share an `externalId`, and for a `replyingTo` that is no `externalId`
 * of the request's quotes.
 *
 * @param request the body without its unknown and absent fields.
 * @param unknown the places of unknown fields, as for `warningsOf`.
 */
export function addStrictFaults(
  faults: FaultList,
  { body, request }: { body: Fields; request: Fields },
  unknown: readonly number[],
  names: FieldNames,
): void {
  for (const place of unknown) addUnknownFields(faults, fieldsAt(body, place), names)
  if (Array.isArray(request.quotes)) addQuoteFaults(faults, request.quotes)
}

function addUnknownFields(faults: FaultList, { sent, parent, of }: SentFields, names: FieldNames): void {
  for (const name of Object.keys(sent)) {
    if (names[of].includes(name)) continue
    addFault(faults, () => {
      const isLong = name.length > LONGEST_NAMED_FIELD
      const shown = isLong ? `A name of ${name.length} characters` : name
      const pointer = isLong ? parent : pointerTo(parent, name)
      return { pointer, code: 'unknown_field', message: `${shown} is not a field of a ${of}.` }
    })
  }
}

function addQuoteFaults(faults: FaultList, quotes: readonly unknown[]): void {
  const firstIndexes = new Map<unknown, number>()
  for (const [index, quote] of quotes.entries()) {
    const { externalId } = Object(quote)
    const first = firstIndexes.get(externalId)
    if (typeof externalId !== 'string') continue
    if (first === undefined) firstIndexes.set(externalId, index)
    else {
      const message = `externalId is the same as that of quotes[${first}].`
      addFault(faults, () => ({ pointer: `/quotes/${index}/externalId`, code: 'duplicate', message }))
    }
  }
  const message = 'replyingTo must be the externalId of a quote of this request.'
  for (const [index, quote] of quotes.entries()) {
    const { replyingTo } = Object(quote)
    if (typeof replyingTo === 'string' && !firstIndexes.has(replyingTo))
      addFault(faults, () => ({ pointer: `/quotes/${index}/replyingTo`, code: 'unmatched_reply', message }))
  }
}
