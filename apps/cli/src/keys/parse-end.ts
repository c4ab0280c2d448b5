import { InvalidArgumentError } from 'commander'
import { durationSeconds } from './parse-duration.ts'

// ISO 8601: a date, or a date and time of day; without an offset it is UTC, as everywhere in Sluice.
const DATE_TIME = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/

/** The end that an operator gives as a date or as the time until then (`90d`); throws commander's InvalidArgumentError. */
export function parseEnd(text: string, now = Date.now()): Date {
  const seconds = durationSeconds(text)
  if (seconds !== undefined) return new Date(now + seconds * 1_000)
  const [, day = '', offset] = DATE_TIME.exec(text) ?? []
  const end = new Date(text.includes('T') && offset === undefined ? `${text}Z` : text)
  if (!isDay(day) || Number.isNaN(end.getTime())) {
    throw new InvalidArgumentError('It is a time from now (90d) or an ISO 8601 date (2030-01-31, 2030-01-31T12:00Z).')
  }
  return end
}

/** Date takes 30 February for 1 March. */
function isDay(day: string): boolean {
  const midnight = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day)
}
