// Finds all faults of a thread: what its schema refuses and, if asked, also what is otherwise ignored or merged.
import type { ErrorObject } from 'ajv'
import { addFault, explainFault, type Fault, type FaultList, LONGEST_NAMED_FIELD, pointerTo } from './faults.ts'
import { isRecord } from './thread.ts'
import type { FieldNames } from './thread-request.ts'

/** A parsed body, the request without its unknown and absent fields, and the errors that the schema found in that. */
interface CheckedThread {
  body: Record<string, unknown>
  request: Record<string, unknown>
  errors: readonly ErrorObject[] | null | undefined
}

/** Finds the faults of a thread. `strict`: `Prefer: handling=strict` (RFC 7240). */
export function threadFaults(
  { body, request, errors }: CheckedThread,
  { strict, maxQuotes, names }: { strict: boolean; maxQuotes: number; names: FieldNames },
): FaultList {
  const faults: FaultList = { errors: [], total: 0 }
  const { quotes } = body
  if (Array.isArray(quotes) && quotes.length > maxQuotes)
    addFault(faults, () => tooManyQuotes(quotes.length, maxQuotes))
  for (const error of errors ?? []) {
    if (!repeatsType(error)) addFault(faults, () => explainFault(error))
  }
  if (strict) addStrictFaults(faults, body, quotePairs(body, request), names)
  return faults
}

function tooManyQuotes(count: number, limit: number): Fault {
  const message = `quotes must have at most ${limit} elements, and has ${count}.`
  return { pointer: '/quotes', code: 'too_many', message }
}

/** Whether the error only repeats that the value has the wrong type: such a value is not in an enum either. */
function repeatsType({ keyword, data }: ErrorObject): boolean {
  return keyword === 'enum' && typeof data !== 'string'
}

/** A quote that is an object, as it was sent and pruned. */
type QuotePair = { index: number; sent: Record<string, unknown>; pruned: Record<string, unknown> }

function quotePairs({ quotes: sentQuotes }: CheckedThread['body'], { quotes }: CheckedThread['request']): QuotePair[] {
  if (!Array.isArray(sentQuotes) || !Array.isArray(quotes)) return []
  return quotes.flatMap((pruned: unknown, index) => {
    const sent: unknown = sentQuotes[index]
    return isRecord(pruned) && isRecord(sent) ? [{ index, sent, pruned }] : []
  })
}

/** Adds unknown fields, quotes that share an `externalId`, and replies to none of these quotes. */
function addStrictFaults(
  faults: FaultList,
  body: Record<string, unknown>,
  quotes: readonly QuotePair[],
  names: FieldNames,
): void {
  addUnknownFields(faults, body, '', names.source)
  for (const { index, sent } of quotes) addUnknownFields(faults, sent, pointerTo('/quotes', index), names.quote)
  addUnmatchedReplies(faults, quotes, addDuplicates(faults, quotes))
}

function addUnknownFields(faults: FaultList, sent: object, parent: string, known: readonly string[]): void {
  for (const name of Object.keys(sent)) {
    if (!known.includes(name)) addFault(faults, () => unknownField(parent, name))
  }
}

function unknownField(parent: string, name: string): Fault {
  const kind = parent === '' ? 'source' : 'quote'
  return name.length > LONGEST_NAMED_FIELD
    ? {
        pointer: parent,
        code: 'unknown_field',
        message: `A name of ${name.length} characters is not a field of a ${kind}.`,
      }
    : { pointer: pointerTo(parent, name), code: 'unknown_field', message: `${name} is not a field of a ${kind}.` }
}

/** Returns the index of the first quote of each `externalId`. */
function addDuplicates(faults: FaultList, quotes: readonly QuotePair[]): Map<unknown, number> {
  const firstIndexes = new Map<unknown, number>()
  for (const { index, pruned } of quotes) {
    const { externalId } = pruned
    if (typeof externalId !== 'string') continue
    const first = firstIndexes.get(externalId)
    if (first === undefined) firstIndexes.set(externalId, index)
    else addFault(faults, () => duplicate(index, first))
  }
  return firstIndexes
}

function duplicate(index: number, first: number): Fault {
  const message = `externalId is the same as that of quotes[${first}].`
  return { pointer: `/quotes/${index}/externalId`, code: 'duplicate', message }
}

function addUnmatchedReplies(
  faults: FaultList,
  quotes: readonly QuotePair[],
  known: ReadonlyMap<unknown, number>,
): void {
  for (const { index, pruned } of quotes) {
    const { replyingTo } = pruned
    if (typeof replyingTo === 'string' && !known.has(replyingTo)) addFault(faults, () => unmatchedReply(index))
  }
}

function unmatchedReply(index: number): Fault {
  const message = 'replyingTo must be the externalId of a quote of this request.'
  return { pointer: `/quotes/${index}/replyingTo`, code: 'unmatched_reply', message }
}
