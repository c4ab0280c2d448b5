// Finds all faults of a thread: what its schema refuses and, if asked, also what is otherwise ignored or merged.
import type { ErrorObject } from 'ajv'
import { addFault, explainFault, type FaultList, LONGEST_NAMED_FIELD, pointerTo } from './faults.ts'
import { isRecord } from './field-values.ts'
import type { FieldNames } from './thread-request.ts'

type Fields = Record<string, unknown>

/** A parsed body, the request without its unknown and absent fields, and the errors that the schema found in that. */
interface CheckedThread {
  body: Fields
  request: Fields
  errors: readonly ErrorObject[] | null | undefined
}

/** Finds the faults of a thread. `strict`: `Prefer: handling=strict` (RFC 7240). */
export function threadFaults(
  { body, request, errors }: CheckedThread,
  { strict, maxQuotes, names }: { strict: boolean; maxQuotes: number; names: FieldNames },
): FaultList {
  const faults: FaultList = { errors: [], total: 0 }
  const { quotes } = body
  if (Array.isArray(quotes) && quotes.length > maxQuotes) {
    const message = `quotes must have at most ${maxQuotes} elements, and has ${quotes.length}.`
    addFault(faults, () => ({ pointer: '/quotes', code: 'too_many', message }))
  }
  for (const error of errors ?? []) {
    // A value of the wrong type is not in an enum either.
    const repeatsType = error.keyword === 'enum' && typeof error.data !== 'string'
    if (!repeatsType) addFault(faults, () => explainFault(error))
  }
  if (strict) addStrictFaults(faults, body, quotePairs(body, request), names)
  return faults
}

/** A quote that is an object, as it was sent and pruned. */
type QuotePair = { index: number; sent: Fields; pruned: Fields }

function quotePairs({ quotes: sentQuotes }: Fields, { quotes }: Fields): QuotePair[] {
  if (!Array.isArray(sentQuotes) || !Array.isArray(quotes)) return []
  return quotes.flatMap((pruned: unknown, index) => {
    const sent: unknown = sentQuotes[index]
    return isRecord(pruned) && isRecord(sent) ? [{ index, sent, pruned }] : []
  })
}

/** Adds unknown fields, quotes that share an `externalId`, and replies to none of these quotes. */
function addStrictFaults(faults: FaultList, body: Fields, quotes: readonly QuotePair[], names: FieldNames): void {
  addUnknownFields(faults, body, '', names.source)
  for (const { index, sent } of quotes) addUnknownFields(faults, sent, pointerTo('/quotes', index), names.quote)
  const firstIndexes = new Map<unknown, number>()
  for (const { index, pruned } of quotes) {
    const { externalId } = pruned
    const first = firstIndexes.get(externalId)
    if (typeof externalId !== 'string') continue
    if (first === undefined) firstIndexes.set(externalId, index)
    else {
      const message = `externalId is the same as that of quotes[${first}].`
      addFault(faults, () => ({ pointer: `/quotes/${index}/externalId`, code: 'duplicate', message }))
    }
  }
  const message = 'replyingTo must be the externalId of a quote of this request.'
  for (const { index, pruned } of quotes) {
    const { replyingTo } = pruned
    if (typeof replyingTo === 'string' && !firstIndexes.has(replyingTo))
      addFault(faults, () => ({ pointer: `/quotes/${index}/replyingTo`, code: 'unmatched_reply', message }))
  }
}

function addUnknownFields(faults: FaultList, sent: object, parent: string, known: readonly string[]): void {
  const kind = parent === '' ? 'source' : 'quote'
  for (const name of Object.keys(sent)) {
    if (known.includes(name)) continue
    addFault(faults, () => {
      const isLong = name.length > LONGEST_NAMED_FIELD
      const shown = isLong ? `A name of ${name.length} characters` : name
      const pointer = isLong ? parent : pointerTo(parent, name)
      return { pointer, code: 'unknown_field', message: `${shown} is not a field of a ${kind}.` }
    })
  }
}
