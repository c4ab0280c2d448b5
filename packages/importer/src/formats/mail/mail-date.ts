// Reads the dates of mails, from their Date header and from the separators of an mbox.
import { createZonedClock, isNoDate } from '../values/iso-date.ts'

/** Matches `2024`, `1 May 24`, `1 May 124` and `5/1/24`, but not the zone `+0000`. */
const YEAR =
  /(?<![\s\d][+-])\b\d{4}\b|[a-z][ -]1\d\d |\b\d{1,2}[ -][a-z]{3,}[ -]\d{2}\b(?!:)|\d\/\d{1,2}\/\d/i
/** Matches everything up to the time of the day, and what follows it. */
const TIME = /^(.*?\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s*[AP]M\b)?)(.*)/is
/** Matches the form of most dates, which needs no search for its parts. */
const USUAL = /^(?:[A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-][01]\d[0-5]\d$/
const OFFSET = /([+-])(\d{1,2}):?(\d\d)?(?!\d)/
/**
 * Repairs dates. Programs that counted years from 1900 wrote 100 for 2000. In dates with full
 * stops, days come first.
 */
const REPAIRS: readonly [RegExp, string][] = [
  [/(\d)T(\d)/, '$1 $2'],
  [/(?<=[a-z][ -])1(\d\d) /i, '20$1 '],
  [/\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b/, '$3-$2-$1'],
  [/ (\d{1,2})\.(\d\d)\.(\d\d)\b/, ' $1:$2:$3'],
]
/** Finds most dates that need a repair, so that the others need no search. */
const FAULTY = /\d[T.]\d|[a-z][ -]1\d\d /i
const COMMENT = /\([^()]*\)/g

/** A longer header is not a date. Without a bound, searches would take the square of its length. */
const DATE_CHARACTERS = 200

/** Hours ahead of UTC by zone. `IST` is India's zone, and `CST` America's (RFC 822). */
const ZONES =
  'HST-10 AKST-9 PST-8 AKDT-8 MST-7 PDT-7 CST-6 MDT-6 EST-5 CDT-5 AST-4 EDT-4 NST-3.5 ADT-3 BRT-3 ART-3 NDT-2.5 BRST-2 UT0 UTC0 GMT0 Z0 WET0 WEST1 BST1 CET1 MET1 MEZ1 CEST2 MEST2 MESZ2 EET2 SAST2 EEST3 MSK3 MSD4 PKT5 IST5.5 ICT7 WIB7 HKT8 SGT8 AWST8 JST9 KST9 ACST9.5 AEST10 ACDT10.5 AEDT11 NZST12 NZDT13'
const HOURS = new Map(
  Array.from(ZONES.matchAll(/([A-Z]+)(\S+)/g), ([, name = '', hours]) => [name, Number(hours)]),
)
const HOUR_MS = 3_600_000

/**
 * Reads a Date header. Returns undefined for a date without a year, although JavaScript would add
 * one. A date without a zone, or with an unknown zone, is taken as UTC.
 */
export function mailDate(header = ''): string | undefined {
  const usual = USUAL.test(header) ? Date.parse(header) : Number.NaN
  if (usual > 0) return isoDateBehind(usual, 0)
  if (header.length > DATE_CHARACTERS || !YEAR.test(header)) return undefined
  const [comment = ''] = header.match(COMMENT) ?? []
  const bare = comment === '' ? header : header.replace(COMMENT, ' ')
  const date = FAULTY.test(bare)
    ? REPAIRS.reduce((text, [fault, repaired]) => text.replace(fault, repaired), bare)
    : bare
  const [, untilTime = date, behind = ''] = TIME.exec(date) ?? []
  const [offset = '', sign, hours, minutes = '0'] = OFFSET.exec(behind) ?? []
  const [year = ''] = /\b\d{4}\b/.exec(behind.replace(offset, ' ')) ?? []
  const asUtc = Date.parse(`${untilTime} ${year} UTC`)
  if (Number.isNaN(asUtc)) return undefined
  const ahead = Number(`${sign}1`) * (Number(hours) + Number(minutes) / 60)
  const iso =
    offset === '' ? inZone(asUtc, zoneIn(behind) ?? zoneIn(comment)) : isoDateBehind(asUtc, ahead)
  return iso === undefined || isNoDate(iso) ? undefined : iso
}

function zoneIn(text: string): string | undefined {
  return /[A-Z][\w/]*/i.exec(text)?.[0]
}

function inZone(asUtc: number, zone = 'UTC'): string | undefined {
  const hours = HOURS.get(zone.toUpperCase())
  const date = isoDateBehind(asUtc, hours ?? 0)
  // Old systems wrote names such as EST5EDT, which are IANA names.
  if (hours !== undefined || !/[\d/]/.test(zone)) return date
  try {
    return createZonedClock(zone)(date.slice(0, '2024-05-01T10:00:00'.length))
  } catch {
    return date
  }
}

function isoDateBehind(asUtc: number, hours: number): string {
  return new Date(asUtc - hours * HOUR_MS).toISOString()
}

/** Matches a date with the names of the weekday and the month, or an ISO date. */
const IN_SEPARATOR =
  /\b(?:[A-Z][a-z]{2},? +(?:[A-Z][a-z]{2} +\d{1,2}|\d{1,2} +[A-Z][a-z]{2})\b|\d{4}-\d\d-\d\d).*/

/** Returns the date in a separator of an mbox. Without a zone, it is UTC (RFC 4155). */
export function separatorDate(separator = ''): string | undefined {
  return mailDate(IN_SEPARATOR.exec(separator.trimEnd())?.[0])
}
