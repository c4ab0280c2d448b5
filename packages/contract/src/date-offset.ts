// Brings a time with an offset to UTC, on the text if it can: `toISOString` alone takes longer than all of it.

const DAY_MINUTES = 24 * 60
const DAY_MS = DAY_MINUTES * 60_000

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

/** Undefined outside the years 1 to 9999: many clients of MongoDB, Python's among them, can't read such a stored date. */
function dayAfter(day: string, days: number): string | undefined {
  const utc = new Date(Date.parse(day) + days * DAY_MS).toISOString()
  return /^(?!0000)\d{4}-/.test(utc) ? utc.slice(0, 10) : undefined
}

function twoDigits(value: number): string {
  return value < 10 ? `0${value}` : String(value)
}
