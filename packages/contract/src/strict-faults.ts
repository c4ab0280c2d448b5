// Finds the faults that exist only with `Prefer: handling=strict` (RFC 7240).
import { addFault, type Fault, type FaultList, pointerTo } from './faults.ts'

/** The known fields of a source and of a quote, in the order of the schema. */
export type FieldNames = { source: readonly string[]; quote: readonly string[] }

/** A quote that is an object, as it was sent and without its unknown and absent fields. */
export type QuotePair = { index: number; sent: Record<string, unknown>; pruned: Record<string, unknown> }

// A longer name is not repeated in the answer: it can be as long as the body.
const LONGEST_NAMED_FIELD = 200

/** Adds unknown fields of the source and its quotes, quotes that share an `externalId`, and replies to none of these quotes. */
export function addStrictFaults(
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
