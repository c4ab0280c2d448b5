// Brings a time with an offset to UTC. It works on texts and numbers: `toISOString` alone is slower than all of it.

const DAY_MINUTES = 24 * 60
// Before the year 1, many clients of MongoDB, Python's among them, can't read a stored date.
const FIRST_YEAR = 1
const LAST_YEAR = 9999
// The calendar repeats after 400 years. Shifted by them, no year is below 100, which `Date.UTC` would count from 1900.
const CALENDAR_YEARS = 400

/**
 * Returns the day and time (`2024-05-01T07:30`) in UTC, or undefined outside the years 1 to 9999.
 *
 * @param hours of the offset, with their sign.
 */
export function toUtc(day: string, time: string, hours: string, minutes = '0'): string | undefined {
  const sign = hours.startsWith('-') ? -1 : 1
  const offset = Number(hours) * 60 + sign * Number(minutes)
  if (offset === 0) return `${day}T${time}`
  const utcMinutes = minutesOf(time) - offset
  const days = Math.floor(utcMinutes / DAY_MINUTES)
  const utcDay = days === 0 ? day : dayAfter(day, days)
  const minuteOfDay = utcMinutes - days * DAY_MINUTES
  return utcDay && `${utcDay}T${twoDigits(Math.floor(minuteOfDay / 60))}:${twoDigits(minuteOfDay % 60)}`
}

function minutesOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3))
}

function dayAfter(day: string, days: number): string | undefined {
  const [year, month, date] = [Number(day.slice(0, 4)), Number(day.slice(5, 7)), Number(day.slice(8))]
  const utc = new Date(Date.UTC(year + CALENDAR_YEARS, month - 1, date + days))
  const utcYear = utc.getUTCFullYear() - CALENDAR_YEARS
  if (utcYear < FIRST_YEAR || utcYear > LAST_YEAR) return undefined
  return `${String(utcYear).padStart(4, '0')}-${twoDigits(utc.getUTCMonth() + 1)}-${twoDigits(utc.getUTCDate())}`
}

function twoDigits(value: number): string {
  return value < 10 ? `0${value}` : String(value)
}
