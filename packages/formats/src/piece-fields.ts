// Makes the fields of pieces from values that may be absent.
import { isoDateOf } from './iso-date.ts'

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** The fields that have a value: a later piece of a source must not replace a field with nothing. */
export function present<T extends object>(fields: T): Present<T>
export function present(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

const FIRST_MOMENT = Date.parse('0001-01-01T00:00:00Z')
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59.999Z')

/** A moment as an ISO date in UTC, from milliseconds since 1970. Undefined beyond the years that a thread can have. */
export function isoDate(milliseconds: number | undefined): string | undefined {
  if (milliseconds === undefined || !(milliseconds >= FIRST_MOMENT && milliseconds <= LAST_MOMENT)) return undefined
  return isoDateOf(milliseconds / 1_000)
}

/** The first line of a text that is not blank, as a title. */
export function firstLine(text: string): string {
  const start = text.trimStart()
  const end = start.search(/[\r\n]/)
  return (end === -1 ? start : start.slice(0, end)).trimEnd()
}
