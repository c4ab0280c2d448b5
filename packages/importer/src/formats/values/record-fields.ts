// Reads the fields of records that other programs wrote. A field of the wrong type counts as
// missing.
import { isRecord } from '@sluice/contract'

export type JsonObject = Readonly<Record<string, unknown>>

/** Returns the value if it is an object, else undefined. */
export function asObject(value: unknown): JsonObject | undefined {
  return isRecord(value) ? value : undefined
}

/** Returns the value if it is an array, else an empty one. */
export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Returns the objects of the value if it is an array, else an empty list. */
export function asObjects(value: unknown): readonly JsonObject[] {
  return asArray(value).filter(isRecord)
}

/** Returns the value if it is a string with more than white space, else undefined. */
export function asText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

/** Returns an identifier as a string. Some versions of a format write it as a number. */
export function asId(value: unknown): string | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : asText(value)
}

/** Returns a number if it is finite. Some exports write it as text. */
export function asNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/**
 * Returns the fields that have a value: an empty text or list must not replace one of an earlier
 * piece.
 */
export function present<T extends object>(fields: T): Present<T>
export function present(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value?.length !== 0),
  )
}

/** The first line of a text that is not blank, as a title. */
export function firstLine(text: string): string {
  const start = text.trimStart()
  const end = start.search(/[\r\n]/)
  return (end === -1 ? start : start.slice(0, end)).trimEnd()
}
