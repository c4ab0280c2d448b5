// Finds all faults of a thread: what its schema refuses and, if asked, also what is otherwise ignored or merged.
import type { ErrorObject } from 'ajv'
import { addFault, type FaultList, faultsOf, LONGEST_NAMED_FIELD, pointerTo } from './faults.ts'
import type { FieldNames } from './thread-request.ts'
import { fieldsAt, type SentFields } from './warnings.ts'

type Fields = Record<string, unknown>

/** A parsed body, the request without its unknown and absent fields, and the errors that the schema found in that. */
interface CheckedThread {
  body: Fields
  request: Fields
  /** Where the body has unknown fields: see `warningsOf`. */
  unknown: readonly number[]
  errors: readonly ErrorObject[] | null | undefined
}

/** Finds the faults of a thread. `strict`: `Prefer: handling=strict` (RFC 7240). */
export function threadFaults(
  { body, request, unknown, errors }: CheckedThread,
  { strict, maxQuotes, names }: { strict: boolean; maxQuotes: number; names: FieldNames },
): FaultList {
  const faults = faultsOf(errors)
  const { quotes } = body
  if (Array.isArray(quotes) && quotes.length > maxQuotes) {
    const message = `quotes must have at most ${maxQuotes} elements, and has ${quotes.length}.`
    addFault(faults, () => ({ pointer: '/quotes', code: 'too_many', message }))
  }
  if (strict) {
    for (const place of unknown) addUnknownFields(faults, fieldsAt(body, place), names)
    if (Array.isArray(request.quotes)) addQuoteFaults(faults, request.quotes)
  }
  return faults
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

/** Adds quotes that share an `externalId`, and replies to none of these quotes. */
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
