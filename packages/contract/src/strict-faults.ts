import type { Fault } from './fault.ts'
import { addFault, type FaultList } from './fault-list.ts'
import { pointerTo } from './json-pointer.ts'
import type { FieldNames, PrunedRequest } from './prune-request.ts'
import { isRecord } from './record.ts'

// A longer name is not repeated in the answer: it can be as long as the body.
const LONGEST_NAMED_FIELD = 200

type Request = PrunedRequest & { body: Record<string, unknown> }

/**
 * Adds what `Prefer: handling=strict` (RFC 7240) makes an error: unknown fields of the source and its quotes, quotes
 * that share an `externalId`, and replies to none of these quotes.
 */
export function addStrictFaults(faults: FaultList, { body, givenQuotes, request }: Request, names: FieldNames): void {
  addUnknownFields(faults, body, '', names.source)
  const quotes = isRecord(request) ? request.quotes : undefined
  if (!Array.isArray(quotes) || !Array.isArray(givenQuotes)) return
  for (const index of quotes.keys()) {
    const quote: unknown = givenQuotes[index]
    if (isRecord(quote)) addUnknownFields(faults, quote, pointerTo('/quotes', index), names.quote)
  }
  addUnmatchedReplies(faults, quotes, addDuplicates(faults, quotes))
}

function addUnknownFields(faults: FaultList, given: object, parent: string, known: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) addFault(faults, () => unknownField(parent, name))
  }
}

function unknownField(parent: string, name: string): Fault {
  const kind = parent === '' ? 'source' : 'quote'
  return name.length > LONGEST_NAMED_FIELD
    ? {
        pointer: parent,
        code: 'unknown_field',
        message: `A name of ${name.length} characters is no field of a ${kind}.`,
      }
    : { pointer: pointerTo(parent, name), code: 'unknown_field', message: `${name} is no field of a ${kind}.` }
}

function addDuplicates(faults: FaultList, quotes: unknown[]): Map<string, number> {
  const firstIndexes = new Map<string, number>()
  for (const [index, quote] of quotes.entries()) {
    const externalId = stringField(quote, 'externalId')
    if (externalId === undefined) continue
    const first = firstIndexes.get(externalId)
    if (first === undefined) firstIndexes.set(externalId, index)
    else addFault(faults, () => duplicate(index, first))
  }
  return firstIndexes
}

function duplicate(index: number, first: number): Fault {
  const message = `externalId is the one of quotes[${first}] too.`
  return { pointer: `/quotes/${index}/externalId`, code: 'duplicate', message }
}

function addUnmatchedReplies(faults: FaultList, quotes: unknown[], known: ReadonlyMap<string, number>): void {
  for (const [index, quote] of quotes.entries()) {
    const replyingTo = stringField(quote, 'replyingTo')
    if (replyingTo !== undefined && !known.has(replyingTo)) addFault(faults, () => unmatchedReply(index))
  }
}

function unmatchedReply(index: number): Fault {
  const message = 'replyingTo must be the externalId of a quote of this request.'
  return { pointer: `/quotes/${index}/replyingTo`, code: 'unmatched_reply', message }
}

function stringField(quote: unknown, name: string): string | undefined {
  const value = isRecord(quote) ? quote[name] : undefined
  return typeof value === 'string' ? value : undefined
}
