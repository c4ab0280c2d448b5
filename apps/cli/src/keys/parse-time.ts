// Parses the times of the command line: a duration (`90d`), or the end of a key's life.
import { InvalidArgumentError } from 'commander'

const UNIT_SECONDS = new Map([
  ['s', 1],
  ['m', 60],
  ['h', 3_600],
  ['d', 86_400],
  ['w', 604_800],
])

/** Seconds in a duration such as `30m`, `24h` or `90d`; throws commander's InvalidArgumentError for any other text. */
export function parseDuration(text: string): number {
  const seconds = durationSeconds(text)
  if (seconds === undefined) throw new InvalidArgumentError('Write a number and a unit: 30m, 24h, 90d, 2w.')
  return seconds
}

function durationSeconds(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? []
  const seconds = UNIT_SECONDS.get(unit)
  return seconds === undefined ? undefined : Number(count) * seconds
}

// ISO 8601: a date, or a date and time of day; UTC without an offset, as everywhere in Sluice.
const DATE_TIME = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/

/** The end that an operator enters as a date or as the time until then (`90d`); throws commander's InvalidArgumentError. */
export function parseEnd(text: string, now = Date.now()): Date {
  const seconds = durationSeconds(text)
  if (seconds !== undefined) return new Date(now + seconds * 1_000)
  const [, day = '', offset] = DATE_TIME.exec(text) ?? []
  const end = new Date(text.includes('T') && offset === undefined ? `${text}Z` : text)
  if (!isDay(day) || Number.isNaN(end.getTime())) {
    throw new InvalidArgumentError('Write a time from now (90d) or an ISO 8601 date (2030-01-31, 2030-01-31T12:00Z).')
  }
  return end
}

/** Date takes 30 February for 1 March. */
function isDay(day: string): boolean {
  const midnight = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day)
}
