// Reads the `Prefer` header of a request (RFC 7240).

/**
 * The preferences of a caller. `wait` is in seconds. `waits`: whether the caller waits for its job,
 * which is the default.
 */
export type Preferences = { respondAsync: boolean; wait?: number; waits: boolean; strict: boolean }

/** The preferences of a request without the header. */
export const NO_PREFERENCES: Preferences = { respondAsync: false, waits: true, strict: false }

/**
 * Reads `respond-async`, `wait=N` and `handling=strict`. If a preference is repeated, the first one
 * counts. Ignores malformed and unknown preferences, as the standard requires.
 */
export function parsePrefer(header: string | string[] | undefined): Preferences {
  if (header === undefined) return NO_PREFERENCES
  const values = firstValues([header].flat().join(','))
  const respondAsync = values.get('respond-async') === ''
  const seconds = values.get('wait') ?? ''
  // Above this, a number of seconds is inexact, and longer than any caller waits.
  const wait = /^\d+$/.test(seconds)
    ? Math.min(Number(seconds), Number.MAX_SAFE_INTEGER)
    : undefined
  return {
    respondAsync,
    ...(wait !== undefined && { wait }),
    waits: wait === undefined ? !respondAsync : wait > 0,
    strict: values.get('handling')?.toLowerCase() === 'strict',
  }
}

/**
 * PREFERENCES splits a list at commas. WITHOUT_PARAMETERS cuts a preference at its first semicolon.
 * Both skip quoted strings.
 */
const PREFERENCES = /(?:"(?:\\.|[^"\\])*"?|[^",])+/g
const WITHOUT_PARAMETERS = /^(?:"(?:\\.|[^"\\])*"?|[^";])*/

function firstValues(header: string): Map<string, string> {
  const values = new Map<string, string>()
  for (const preference of header.match(PREFERENCES) ?? []) {
    const [name = '', ...value] = (WITHOUT_PARAMETERS.exec(preference)?.[0] ?? '').split('=')
    const key = name.trim().toLowerCase()
    const text = value.join('=').trim()
    const [, quoted] = /^"(.*)"$/s.exec(text) ?? []
    if (!values.has(key)) values.set(key, quoted?.replaceAll(/\\(.)/g, '$1') ?? text)
  }
  return values
}
