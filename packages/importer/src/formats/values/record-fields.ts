// Reads the fields of records that other programs wrote, where a field of another type counts as absent.
import { isRecord } from '@sluice/contract'

export type JsonObject = Readonly<Record<string, unknown>>

/** Returns the value if it is an object, else undefined. */
export function asObject(value: unknown): JsonObject | undefined {
  return isRecord(value) ? value : undefined
}

/** Returns the value if it is an array, else an empty one. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Returns the objects of the value if it is an array, else an empty list. */
export function asObjects(value: unknown): readonly JsonObject[] {
  return asList(value).filter(isRecord)
}

/** Returns the value if it is a string with more than white space, else undefined. */
export function asText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

/** Returns an identifier, which some versions of a format write as a number, as a string. */
export function asId(value: unknown): string | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : asText(value)
}

/** Returns a number, which some exports write as text, if it is finite. */
export function asNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** The fields that have a value, which an empty text or list is not. No later piece of a source may empty a field. */
export function present<T extends object>(fields: T): Present<T>
export function present(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value?.length !== 0))
}

/** The first line of a text that is not blank, as a title. */
export function firstLine(text: string): string {
  const start = text.trimStart()
  const end = start.search(/[\r\n]/)
  return (end === -1 ? start : start.slice(0, end)).trimEnd()
}
