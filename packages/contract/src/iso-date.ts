// Reads ISO 8601 dates, which requests may write in many forms, into the one form that is stored.

// Day, hours and minutes, seconds, decimals, hours of the offset with their sign, minutes of the offset.
const ISO_DATE =
  /^(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))(?:T((?:[01]\d|2[0-3]):[0-5]\d)(?:(:[0-5]\d)(?:[.,](\d+))?)?(?:Z|([+-](?:[01]\d|2[0-3]))(?::?([0-5]\d))?)?)?$/

const DAY_MINUTES = 24 * 60
const LAST_YEAR = 9999
// The calendar repeats after 400 years. Shifted by them, no year is below 100, which `Date.UTC` would count from 1900.
const CALENDAR_YEARS = 400

/**
 * Reads a date of ISO 8601-1 in its extended form: a full date, which is midnight UTC, or a date-time with `Z`, an
 * offset, or neither, which is UTC. Returns the moment in UTC with milliseconds (`2024-05-01T00:00:00.000Z`), further
 * decimals cut off. Returns undefined if the text has another form, names a day that does not exist, or lies outside the
 * years 0000 to 9999 of UTC, which four digits can't represent.
 *
 * Every quote has a date or two, so this works on the text if it can: `toISOString` alone takes longer than all of it.
 */
export function parseIsoDate(text: string): string | undefined {
  const parts = ISO_DATE.exec(text)
  const day = parts?.[1]
  if (!parts || day === undefined || !existsInCalendar(day)) return undefined
  const time = parts[2] ?? '00:00'
  const rest = `${parts[3] ?? ':00'}.${milliseconds(parts[4])}Z`
  const offset = parts[5] === undefined ? 0 : offsetMinutes(parts[5], parts[6])
  return offset === 0 ? `${day}T${time}${rest}` : shift(day, minutesOf(time) - offset, rest)
}

function existsInCalendar(day: string): boolean {
  const dayOfMonth = Number(day.slice(8))
  return dayOfMonth <= 28 || utcDay(day, 0).getUTCDate() === dayOfMonth
}

function milliseconds(decimals = ''): string {
  return decimals.length === 3 ? decimals : decimals.slice(0, 3).padEnd(3, '0')
}

function offsetMinutes(hours: string, minutes = '0'): number {
  const sign = hours.startsWith('-') ? -1 : 1
  return Number(hours) * 60 + sign * Number(minutes)
}

function minutesOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3))
}

function shift(day: string, minutes: number, rest: string): string | undefined {
  const days = Math.floor(minutes / DAY_MINUTES)
  const utc = days === 0 ? day : formatDay(utcDay(day, days))
  const minuteOfDay = minutes - days * DAY_MINUTES
  return utc && `${utc}T${twoDigits(Math.floor(minuteOfDay / 60))}:${twoDigits(minuteOfDay % 60)}${rest}`
}

function utcDay(day: string, daysLater: number): Date {
  const [year, month, date] = [Number(day.slice(0, 4)), Number(day.slice(5, 7)), Number(day.slice(8))]
  return new Date(Date.UTC(year + CALENDAR_YEARS, month - 1, date + daysLater))
}

function formatDay(date: Date): string | undefined {
  const year = date.getUTCFullYear() - CALENDAR_YEARS
  if (year < 0 || year > LAST_YEAR) return undefined
  return `${String(year).padStart(4, '0')}-${twoDigits(date.getUTCMonth() + 1)}-${twoDigits(date.getUTCDate())}`
}

function twoDigits(value: number): string {
  return value < 10 ? `0${value}` : String(value)
}
