// Reads the fields of records that other programs wrote. A field of the wrong type counts as
// missing.
import { isRecord } from '@sluice/contract'

export type JsonObject = Readonly<Record<string, unknown>>

/** Returns the value if it is an object, otherwise undefined. */
export function asObject(value: unknown): JsonObject | undefined {
  return isRecord(value) ? value : undefined
}

/** Returns the value if it is an array, otherwise an empty array. */
export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Returns the objects in the value if it is an array, otherwise an empty array. */
export function asObjects(value: unknown): readonly JsonObject[] {
  return asArray(value).filter(isRecord)
}

/** Returns the value if it is a text that is not blank, otherwise undefined. */
export function asText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

/** Returns the texts in the value if it is an array, otherwise an empty array. */
export function asTexts(value: unknown): string[] {
  return asArray(value).flatMap((one) => asText(one) ?? [])
}

/** Returns a text that is not blank, or a number or a truth value as a text. */
export function asWord(value: unknown): string | undefined {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : asText(value)
}

/** Returns an identifier as a string. Some versions of a format write it as a number. */
export function asId(value: unknown): string | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : asText(value)
}

/** Returns a finite number, otherwise undefined. Some exports write numbers as text. */
export function asNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** An empty text or list must not replace the value of an earlier piece. */
export function present<T extends object>(fields: T): Present<T>
export function present(fields: object): object {
  // Not by `filter` and `fromEntries`, which take twice the time: each record passes through here.
  const kept: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined && value?.length !== 0) kept[name] = value
  return kept
}

/** Returns the first line of a text that is not blank, for use as a title. */
export function firstLine(text: string): string {
  const start = text.trimStart()
  const end = start.search(/[\r\n]/)
  return (end === -1 ? start : start.slice(0, end)).trimEnd()
}
