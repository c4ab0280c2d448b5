import type { ValidateFunction } from 'ajv'
import { explainFault, repeatsType, tooManyQuotes } from './explain-fault.ts'
import type { Fault } from './fault.ts'
import { addFault, type FaultList } from './fault-list.ts'
import type { Limits } from './limits.ts'
import { normaliseThread } from './normalise-thread.ts'
import { type FieldNames, pruneRequest } from './prune-request.ts'
import { isRecord } from './record.ts'
import { addStrictFaults } from './strict-faults.ts'
import type { Thread } from './thread.ts'
import { type ThreadRequest, ThreadRequestSchema } from './thread-request-schema.ts'
import { createValidator } from './validator.ts'

/** `errors` lists at most 50 faults, `total` counts all. */
export type ParsedThread = { ok: true; thread: Thread } | { ok: false; errors: Fault[]; total: number }

export type ParseThread = (body: unknown, options: { strict: boolean }) => ParsedThread

/**
 * Makes the check that every request passes, compiled once for its limits. It takes any parsed JSON value, never throws,
 * and looks at nothing but known fields, so it takes time in proportion to the body at worst. With `strict` what is
 * otherwise ignored or merged is a fault.
 */
export function createThreadParser(limits: Limits): ParseThread {
  const schema = ThreadRequestSchema(limits)
  const names = {
    source: Object.keys(schema.properties),
    quote: Object.keys(schema.properties.quotes.items.properties),
  }
  const isValid = createValidator().compile<ThreadRequest>(schema)
  return (body, { strict }) => parseThread(body, strict, limits.quotes, names, isValid)
}

function parseThread(
  body: unknown,
  strict: boolean,
  maxQuotes: number,
  names: FieldNames,
  isValid: ValidateFunction<ThreadRequest>,
): ParsedThread {
  if (!isRecord(body)) return { ok: false, errors: [NOT_AN_OBJECT], total: 1 }
  const faults: FaultList = { errors: [], total: 0 }
  const { request, givenQuotes } = pruneRequest(body, names, maxQuotes)
  addTooManyQuotes(faults, givenQuotes, maxQuotes)
  const valid = isValid(request)
  for (const error of isValid.errors ?? []) {
    if (!repeatsType(error)) addFault(faults, () => explainFault(error))
  }
  if (strict) addStrictFaults(faults, { body, givenQuotes, request }, names)
  return valid && faults.total === 0 ? { ok: true, thread: normaliseThread(request) } : { ok: false, ...faults }
}

const NOT_AN_OBJECT: Fault = { pointer: '', code: 'type', message: 'The body must be a JSON object.' }

function addTooManyQuotes(faults: FaultList, quotes: unknown, maxQuotes: number): void {
  if (Array.isArray(quotes) && quotes.length > maxQuotes) {
    addFault(faults, () => tooManyQuotes(quotes.length, maxQuotes))
  }
}
