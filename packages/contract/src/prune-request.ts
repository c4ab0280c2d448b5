import { isRecord } from './record.ts'

export type FieldNames = { source: readonly string[]; quote: readonly string[] }

/** `request` holds what `body` gives, `givenQuotes` the quotes just as they were sent. */
export type PrunedRequest = { request: unknown; givenQuotes: unknown }

/**
 * Copies what a request gives: known fields of its own whose value is neither null nor blank. Never looks into a value
 * of the wrong type, so its cost does not depend on what nobody asked for. Quotes keep their indexes, and are all left
 * out where there are more than `maxQuotes`.
 */
export function pruneRequest(body: Record<string, unknown>, names: FieldNames, maxQuotes: number): PrunedRequest {
  const request = pruneFields(body, names.source)
  const givenQuotes = request.quotes
  if (Array.isArray(givenQuotes)) {
    request.quotes = givenQuotes.length > maxQuotes ? [] : pruneQuotes(givenQuotes, names.quote)
  }
  return { request, givenQuotes }
}

function pruneQuotes(quotes: unknown[], names: readonly string[]): unknown[] {
  return quotes.map((quote) => (isRecord(quote) ? pruneFields(quote, names) : quote))
}

function pruneFields(given: Record<string, unknown>, names: readonly string[]): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const name of names) {
    if (!Object.hasOwn(given, name)) continue
    const value = given[name]
    if (!isAbsent(value)) kept[name] = value
  }
  return kept
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === 'string' && value.trim() === '')
}
