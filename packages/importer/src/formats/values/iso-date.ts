// Writes times as ISO 8601 dates in UTC, in the form that the API reads.
import { parseIsoDate } from '@sluice/contract'
import { FormatError } from '../format.ts'

const FIRST_MOMENT = Date.parse('0001-01-01T00:00:00Z')
const LAST_MOMENT = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * The zeros of time in Unix (and -1, its error), .NET, Windows, SQL Server and spreadsheets, which
 * programs write if they have no date.
 */
const ZEROS = new Set([
  ...['1969-12-31T23:59:59.000Z', '1969-12-31T23:59:59.999Z'],
  ...['1970', '0001', '1601', '1753', '1900', '1904'].map((year) => `${year}-01-01T00:00:00.000Z`),
  ...['30', '31'].map((day) => `1899-12-${day}T00:00:00.000Z`),
])

/** Names dates of `ZEROS` in the summary. */
export const ZERO_DATES = 'dates such as 1970-01-01T00:00:00Z, which programs write for none'

/** Returns whether it stands for a missing date. (Nobody wrote in exactly that second.) */
export function isNoDate(iso: string): boolean {
  return iso[0] !== '2' && ZEROS.has(iso)
}

/** A larger number is in milliseconds: in seconds, it would be after the year 5138. */
const MOST_SECONDS = 1e11

/**
 * Converts a time in seconds or milliseconds since 1970 to `2024-05-01T09:30:00.000Z`, because
 * versions of a format use different units. Returns undefined if it stands for a missing date, and
 * outside the years that a thread may have.
 */
export function isoDateOf(time = Number.NaN): string | undefined {
  const seconds = Math.abs(time) < MOST_SECONDS ? time : time / 1_000
  // A double is accurate to a quarter of a microsecond for such a time, so .12 may become .1199999.
  const moment = Math.floor(seconds * 1_000 + 3e-4)
  if (!(moment >= FIRST_MOMENT && moment <= LAST_MOMENT)) return undefined
  const iso = new Date(moment).toISOString()
  return isNoDate(iso) ? undefined : iso
}

/**
 * Matches the end of a date with a zone. After the zone, there may be the year (as X writes it), or
 * the zone's name in brackets.
 */
const ZONE = /(Z|GMT|UTC|[+-]\d{2}(:?\d{2})?)( \([^()]*(?:\([^()]*\))?\)| \d{4})?$/i

/**
 * Rewrites a date in any form that JavaScript reads. A date without a zone is taken as UTC, on any
 * machine. Returns undefined if JavaScript can't read it.
 */
export function isoDateIn(text = ''): string | undefined {
  // The first takes half the time of the second, and reads nearly all dates.
  const iso = parseIsoDate(text) ?? dateOfJavaScript(text)
  return iso === undefined || isNoDate(iso) ? undefined : iso
}

function dateOfJavaScript(text: string): string | undefined {
  const date = new Date(ZONE.test(text) ? text : `${text.replace(/(?<=\d)T(?=\d)/, ' ')} UTC`)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

/** Returns a text that is an ISO date, in UTC. Otherwise returns undefined. */
export function asIsoDate(value: unknown): string | undefined {
  return typeof value === 'string' ? parseIsoDate(value) : undefined
}

/** The length of the day in an ISO date. */
export const DAY_CHARACTERS = '2024-05-01'.length

const LOCAL_TIME = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?$/
const DAY_MS = 86_400_000

/**
 * Creates a function that converts a local time such as `2024-05-01T09:30:00` to an ISO date in
 * UTC. If a time occurs twice because clocks are set back, the first one counts. If a time does not
 * occur because clocks are set forward, the offset before that counts. Throws FormatError if the
 * zone is not an IANA name.
 */
export function createZonedClock(timezone: string): (local: string) => string | undefined {
  const format = createFormat(timezone)
  /** Returns the zone's offset at a moment (from `5/1/2024, GMT+02:00`). */
  const offsetAt = (moment: number) =>
    format.format(moment).split('GMT')[1]?.slice(0, '+02:00'.length) || 'Z'
  // Kept for the next date, which mostly has the same day: Intl takes longer than all else.
  let around = { day: Number.NaN, first: '', last: '' }
  return (text) => {
    const local = text.replace(' ', 'T')
    const asUtc = Date.parse(`${local}Z`)
    if (!LOCAL_TIME.test(text) || Number.isNaN(asUtc)) return undefined
    const day = asUtc - (asUtc % DAY_MS)
    // Between these two days, a zone changes its offset at most once.
    if (day !== around.day)
      around = { day, first: offsetAt(day - DAY_MS), last: offsetAt(day + 2 * DAY_MS) }
    const { first, last } = around
    const [before, after] = [Date.parse(local + first), Date.parse(local + last)]
    const isBefore = first === last || offsetAt(before) === first || offsetAt(after) !== last
    const iso = new Date(isBefore ? before : after).toISOString()
    return isNoDate(iso) ? undefined : iso
  }
}

/** Returns whether a text is the name of a time zone, such as Europe/Berlin. */
export function isTimeZone(text: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: text })
    return true
  } catch {
    return false
  }
}

function createFormat(timezone: string): Intl.DateTimeFormat {
  if (isTimeZone(timezone))
    return new Intl.DateTimeFormat('en', { timeZone: timezone, timeZoneName: 'longOffset' })
  throw new FormatError(
    `--timezone ${timezone} is no time zone: pass an IANA name, such as Europe/Berlin.`,
  )
}
