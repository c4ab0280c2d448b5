// Reads dates and numbers in the forms that people and spreadsheets use.
import { parseIsoDate } from '@sluice/contract'
import type { FormatOptions } from '../format.ts'
import {
  type Calendar,
  calendarShownIn,
  calendarsOf,
  inOurCalendar,
  recentCalendar,
} from './calendars.ts'
import { createZonedClock, isNoDate, isoDateOf } from './iso-date.ts'
import { plainDate } from './local-dates.ts'
import { asNumber } from './record-fields.ts'

const DAY_FIRST = ['d', 'm', 'y']
const MONTH_FIRST = ['m', 'd', 'y']
const YEAR_FIRST = ['y', 'm', 'd']

/** Returns the order in a format such as `DD.MM.YYYY`, `%m/%d/%Y` or `D.M.YY HH:mm`. */
export function orderOf(format: string): string[] | undefined {
  const order = Array.from(
    format.toLowerCase().matchAll(/([dmy])\1*/g),
    ([, letter = '']) => letter,
  ).slice(0, 3)
  return new Set(order).size === 3 ? order : undefined
}

const DATE =
  /^(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?(\d{1,4}|[a-z]{3,9})[.,]?[\s./-]+(\d{1,2}|[a-z]{3,9})[.,]?[\s./-]+(\d{4}|\d{1,2})(?!\d)\.?(.*)$/i
/** As C and X write it: `Wed May 01 09:30:00 +0000 2024`. */
const YEAR_LAST = /^((?:[a-z]{3},? +)?[a-z]{3} +\d{1,2}) +(\d{1,2}:\d\d\S*)( +\S+)? +(\d{4})$/i
/** In Chinese, Japanese and Korean, the half of the day is in front of the time. */
const BEFORE_TIME = String.raw`(?:(?:г\.|klo|kl\.?|à)[\s,]*)?(?:(上午|午前|오전|下午|午後|오후|[AP]M)\s*)?`
const HALF_DAY = String.raw`(?:(?:([apπμ])\.?|\.)\s*)?(?:[mμ]\.?\s*)?`
const CLOCK = String.raw`(\d{1,2})[:.](\d{2})(?:[:.](\d{2})(?:[.,](\d+))?)?\s*${HALF_DAY}`
/** Matches a zone. JavaScript writes `GMT+0200 (Central European Summer Time)`. */
const ZONE = String.raw`(?:(Z|UTC|GMT|[+-]\d\S*)|(?:GMT|UTC)([+-]\d\S*)(?: \([^()]+\))?)`
const TIME = new RegExp(String.raw`^[\sT,]*${BEFORE_TIME}${CLOCK}${ZONE}?$`, 'i')
const MORNING = /^(am?|π|上午|午前|오전)$/i
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
/** Two digits of a year are read as in POSIX: 68 is 2068, and 69 is 1969. */
const FIRST_YEAR_OF_1900 = 69

export type ReadDate = ReturnType<typeof createDateReader>

interface DateOptions extends Pick<FormatOptions, 'dateFormat' | 'timezone'> {
  /** All dates are recent, so the year shows its calendar: 2567 is Buddhist for 2024. */
  isRecent?: boolean
}

/** WhatsApp began in 2009. An older year is of a calendar that is not known. */
const FIRST_RECENT = '2009'

/** Creates a reader of dates. Throws FormatError if `--timezone` is not an IANA name. */
export function createDateReader({ dateFormat, timezone, isRecent = false }: DateOptions) {
  const named = dateFormat === undefined ? undefined : orderOf(dateFormat)
  const toUtc = timezone === undefined ? undefined : createZonedClock(timezone)

  /**
   * Reads a date in a given order.
   * @param shown the calendar that the text shows beside its year.
   */
  function inOrder(
    text: string,
    order: readonly string[] | undefined,
    shown?: Calendar,
  ): string | undefined {
    const [, first = '', second = '', third = '', rest = ''] =
      DATE.exec(text.replace(YEAR_LAST, '$1 $4 $2$3')) ?? []
    const parts = [first, second, third]
    const letters = order ?? orderIn(parts)
    const partOf = (letter: string) => parts[letters?.indexOf(letter) ?? -1] ?? ''
    const [year, month, day] = [
      yearOf(partOf('y'), isRecent),
      monthOf(partOf('m')),
      partOf('d').padStart(2, '0'),
    ]
    const time = timeOf(rest)
    if (time === undefined || !/^\d{4}-\d\d-\d\d$/.test(`${year}-${month}-${day}`)) return undefined
    // If the month has a name, the year is of our calendar.
    const isOurs = calendarsOf(year) === undefined || /[a-z]/i.test(partOf('m'))
    const calendar = isRecent ? recentCalendar(year) : shown
    const date = isOurs
      ? `${year}-${month}-${day}`
      : calendar && inOurCalendar(calendar, year, month, day)
    if (date === undefined || (isRecent && date < FIRST_RECENT)) return undefined
    const local = `${date}T${time.clock}`
    if (time.clock === '00:00:00' && isNoDate(`${local}.000Z`)) return ZERO_DATE
    return parseIsoDate(
      time.zone || toUtc === undefined ? local + (time.zone || 'Z') : (toUtc(local) ?? ''),
    )
  }

  function dateIn(text: string): string | undefined {
    const value = text.trim()
    if (/^\d{10}(\.\d+)?$/.test(value)) return isoDateOf(Number(value))
    if (/^\d{13}$/.test(value)) return isoDateOf(Number(value) / 1_000)
    // Most tables have dates of ISO 8601, which need no search.
    const iso = named === undefined && toUtc === undefined ? parseIsoDate(value) : undefined
    if (iso !== undefined)
      return calendarsOf(iso.slice(0, '2024'.length)) === undefined ? iso : undefined
    return (named && inOrder(value, named)) ?? inOrder(value, undefined) ?? localDateIn(value)
  }

  function localDateIn(value: string): string | undefined {
    const plain = plainDate(value.slice(0, LONGEST_DATE))
    if (plain === value) return undefined
    const shown = calendarShownIn(value)
    return (named && inOrder(plain, named, shown)) ?? inOrder(plain, undefined, shown)
  }

  return {
    /**
     * Reads a date, or seconds or milliseconds since 1970. Returns undefined if the text is not a
     * date, or has two readings. If the text stands for a missing date, returns a moment that is
     * left out when the thread is shaped.
     */
    read: (text: string) => (ZERO.test(text) ? ZERO_DATE : dateIn(text)),
    /** Says why `read` finds no date in a text: its calendar is unknown, or it has two readings. */
    faultOf(text: string): string {
      const value = text.trim()
      const plain = plainDate(value.slice(0, LONGEST_DATE))
      const readings = [DAY_FIRST, MONTH_FIRST].flatMap((order) => {
        const date = inOrder(value, order) ?? inOrder(plain, order, calendarShownIn(value))
        return date === undefined
          ? []
          : `${date.slice(0, 10)} by --date-format ${order.join('/').toUpperCase()}`
      })
      const [, first = '', last = first] = /^(\d{4})[./-]|[./-] ?(\d{4})\b/.exec(plain) ?? []
      const calendars = calendarsOf(last)
      if (calendars !== undefined)
        return `has a year of the ${calendars} calendar (write it as 1 May 2024): ${text.slice(0, 100)}.`
      if (readings.length === 0)
        return `is not a date, such as 2024-05-01T09:30:00Z: ${text.slice(0, 100)}.`
      return `needs --date-format: ${text.slice(0, 100)} is ${readings.join(', or ')}.`
    },
  }
}

/** A longer text is not a date. */
const LONGEST_DATE = 100
/** Matches texts that stand for a missing date. A spreadsheet writes day 0 as only a time. */
const ZERO = /^(?:0+|00:00:00|0000-00-00.*)$/
const ZERO_DATE = '1970-01-01T00:00:00.000Z'

/** Returns the order that a date shows: its year comes first, or its month is a word. */
function orderIn([first = '', second = '']: readonly string[]): readonly string[] | undefined {
  if (/^\d{4}$/.test(first)) return YEAR_FIRST
  if (/[a-z]/i.test(first)) return MONTH_FIRST
  return /[a-z]/i.test(second) ? DAY_FIRST : undefined
}

/** In a recent date, 67 is the Buddhist year 2567, because 2067 is in the future. */
function yearOf(text: string, isRecent: boolean): string {
  if (text.length !== 2) return text
  if (isRecent)
    return 2000 + Number(text) <= new Date().getUTCFullYear() + 1 ? `20${text}` : `25${text}`
  return `${Number(text) < FIRST_YEAR_OF_1900 ? '20' : '19'}${text}`
}

function monthOf(text: string): string {
  const number = MONTHS.indexOf(text.slice(0, 3).toLowerCase()) + 1
  return (number === 0 ? text : String(number)).padStart(2, '0')
}

/** The zone gets the form of ISO 8601. A date without a time begins at midnight. */
function timeOf(rest: string): { clock: string; zone: string } | undefined {
  if (rest.trim() === '') return { clock: '00:00:00', zone: '' }
  const [, before, hour, minute, second = '00', decimals, half = before, name, zone = name ?? ''] =
    TIME.exec(rest) ?? []
  if (hour === undefined) return undefined
  const hours =
    half === undefined ? Number(hour) : (Number(hour) % 12) + (MORNING.test(half) ? 0 : 12)
  const clock = `${String(hours).padStart(2, '0')}:${minute}:${second}${decimals === undefined ? '' : `.${decimals}`}`
  return { clock, zone: /^[a-z]/i.test(zone) ? 'Z' : zone }
}

const THOUSANDS_BY_COMMAS = /^[+-]?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:,\d{3}){2,})$/
const THOUSANDS_BY_POINTS = /^[+-]?\d{1,3}(?:(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})$/
const DECIMAL_COMMA = /^[+-]?\d*,\d+$/
/** 1,234 may be 1234 or 1.234. (A leading zero would show that these are decimals.) */
export const TWO_NUMBERS = /^[+-]?[1-9]\d{0,2},\d{3}$/

/**
 * Reads a number with a decimal point or comma, and groups of thousands. Returns undefined if the
 * text is not a number, or has two readings.
 */
export function numberIn(text: string | undefined): number | undefined {
  const plain = asNumber(text)
  if (plain !== undefined || text === undefined) return plain
  const value = text.replaceAll(/[\s\u2019']/g, '')
  if (TWO_NUMBERS.test(value)) return undefined
  if (THOUSANDS_BY_COMMAS.test(value)) return Number(value.replaceAll(',', ''))
  if (THOUSANDS_BY_POINTS.test(value)) return Number(value.replaceAll('.', '').replace(',', '.'))
  return DECIMAL_COMMA.test(value) ? Number(value.replace(',', '.')) : asNumber(value)
}
