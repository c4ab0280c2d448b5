// Reads values of parsed JSON whose type nobody has checked.

export type JsonObject = Record<string, unknown>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object, or an empty one. */
export function objectIn(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

/** The objects of a list, or none. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** The text, or undefined if it is no text or blank. */
export function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

/** An identifier, which exports write as a number or as text. */
export function idIn(value: unknown): string | undefined {
  return typeof value === 'number' ? String(value) : textIn(value)
}

/** A number that may be written as text. */
export function numberIn(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

/** A moment as an ISO date in UTC, from milliseconds since 1970. Undefined beyond the years that a thread can have. */
export function isoDate(milliseconds: number | undefined): string | undefined {
  if (milliseconds === undefined || !(milliseconds >= FIRST_MOMENT && milliseconds <= LAST_MOMENT)) return undefined
  return new Date(milliseconds).toISOString()
}

const FIRST_MOMENT = Date.parse('0001-01-01T00:00:00Z')
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59.999Z')

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** The fields that have a value: a later piece of a source must not replace a field with nothing. */
export function present<T extends object>(fields: T): Present<T>
export function present(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
