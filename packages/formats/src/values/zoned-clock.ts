// Turns local times of a time zone into UTC.
import { FormatError } from '../format.ts'

const LOCAL_TIME = /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2}))?$/

/**
 * Makes a function that turns `2024-05-01T09:30:00` into an ISO date in UTC, or returns undefined for another text. Of a time
 * that a zone has twice, when its clocks go back, the first one counts; a time that is skipped counts by the offset before.
 *
 * @throws {FormatError} if the zone is no IANA name.
 */
export function createZonedClock(timezone: string): (local: string) => string | undefined {
  const format = createFormat(timezone)
  return (local) => {
    const fields = LOCAL_TIME.exec(local)
      ?.slice(1)
      .map((field) => Number(field ?? 0))
    if (!fields) return undefined
    const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = fields
    const asUtc = Date.UTC(year, month - 1, day, hour, minute, second)
    return Number.isNaN(asUtc) ? undefined : new Date(toUtc(asUtc, format)).toISOString()
  }
}

/** Looks at the offsets a day before and after: between them a zone changes its offset once at most. */
function toUtc(asUtc: number, format: Intl.DateTimeFormat): number {
  const day = 86_400_000
  const before = asUtc - offsetAt(asUtc - day, format)
  const after = asUtc - offsetAt(asUtc + day, format)
  if (before === after) return before
  return before + offsetAt(before, format) === asUtc || after + offsetAt(after, format) !== asUtc ? before : after
}

/** The zone's offset from UTC at a moment, in milliseconds. */
function offsetAt(moment: number, format: Intl.DateTimeFormat): number {
  const parts = Object.fromEntries(format.formatToParts(moment).map(({ type, value }) => [type, Number(value)]))
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(moment / 1000) * 1000
}

function createFormat(timezone: string): Intl.DateTimeFormat {
  const numeric = 'numeric'
  try {
    return new Intl.DateTimeFormat('en', {
      timeZone: timezone,
      hourCycle: 'h23',
      ...{ year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric, second: numeric },
    })
  } catch {
    throw new FormatError(`--timezone ${timezone} is no time zone: pass an IANA name, such as Europe/Berlin.`)
  }
}
