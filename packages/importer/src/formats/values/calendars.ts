// Converts days from the calendars that phones and tables use in some countries.

/** The calendars by their names in ICU, and the words or digits by which a text shows them. */
const SHOWN = [
  ['islamic-umalqura', /\bAH\b|هـ/],
  ['persian', /\bAP\b|ه\.ش|[۰-۹]/],
  ['buddhist', /\bBE\b|พ\.?ศ|[๐-๙]/],
] as const

export type Calendar = (typeof SHOWN)[number][0]

/** Returns the calendar that a date shows beside its year. Latin and Arabic digits show none. */
export function calendarShownIn(date: string): Calendar | undefined {
  return SHOWN.find(([, words]) => words.test(date))?.[0]
}

/** Names the other calendars in which a year is one of the last hundred. */
export function calendarsOf(year: string): string | undefined {
  if (year >= '1300' && year < '1500') return 'Persian or Islamic'
  return year >= '2440' && year < '2700' ? 'Buddhist' : undefined
}

/** Begins in 2009, when WhatsApp began. The Persian year 1430 begins in 2051. */
const FIRST_ISLAMIC = 1430

/** Returns the calendar in which a year of another calendar is recent. */
export function recentCalendar(year: string): Calendar {
  if (Number(year) > 2000) return 'buddhist'
  return Number(year) < FIRST_ISLAMIC ? 'persian' : 'islamic-umalqura'
}

const BUDDHIST_YEARS = 543
const DAY_MS = 86_400_000
/** The first days of calendars in ours, and the mean lengths of their years and months. */
const YEARS = {
  persian: { epoch: Date.UTC(622, 2, 21), year: 365.2422, month: 30.6 },
  'islamic-umalqura': { epoch: Date.UTC(622, 6, 19), year: 354.367, month: 29.53 },
}
/** A day that was computed from mean lengths is wrong by at most this number of days. */
const ERROR_DAYS = 6

const formats = new Map<string, Intl.DateTimeFormat>()

/** Converts a day of another calendar to ours, such as `2024-05-25`, if there is such a day. */
export function inOurCalendar(
  calendar: Calendar,
  year: string,
  month: string,
  day: string,
): string | undefined {
  if (calendar === 'buddhist') return `${Number(year) - BUDDHIST_YEARS}-${month}-${day}`
  const means = YEARS[calendar]
  const days = (Number(year) - 1) * means.year + (Number(month) - 1) * means.month + Number(day) - 1
  const about = means.epoch + Math.floor(days) * DAY_MS
  const wanted = [year, month, day].map(Number).join('/')
  for (let error = -ERROR_DAYS; error <= ERROR_DAYS; error += 1) {
    const moment = about + error * DAY_MS
    if (dayIn(calendar, moment) === wanted)
      return new Date(moment).toISOString().slice(0, '2024-05-25'.length)
  }
  return undefined
}

function dayIn(icu: string, moment: number): string {
  const known = formats.get(icu)
  const options = { timeZone: 'UTC', year: 'numeric', month: 'numeric', day: 'numeric' } as const
  const format = known ?? new Intl.DateTimeFormat(`en-u-ca-${icu}-nu-latn`, options)
  formats.set(icu, format)
  const parts = new Map(format.formatToParts(moment).map(({ type, value }) => [type, value]))
  return [parts.get('year'), parts.get('month'), parts.get('day')].join('/')
}
