// Reads the dates of mails: in their Date header, and in the separators of an mbox.
import { createZonedClock, isoDateIn } from '../values/iso-date.ts'

/** Matches `2024`, `1 May 24` and `5/1/24`, and not the zone `+0000`. */
const YEAR = /(?<![\s\d][+-])\b\d{4}\b|\b\d{1,2}[ -][a-z]{3,}[ -]\d{2}\b(?!:)|\d\/\d{1,2}\/\d/i
/** Matches what ends with the time of the day, and what follows it. */
const TIME = /^(.*?\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s*[AP]M\b)?)(.*)$/is
const OFFSET = /([+-])(\d{1,2}):?(\d\d)?(?!\d)/
const COMMENT = /\([^()]*\)/g

/** A longer header is no date. The time of the searches grows with the square of its length. */
const DATE_CHARACTERS = 200

/** The hours by which zones are ahead of UTC, for names that are no IANA names or mean other hours there. */
const ZONES: Readonly<Record<string, number>> = {
  ...{
    UT: 0,
    UTC: 0,
    GMT: 0,
    Z: 0,
    WET: 0,
    WEST: 1,
    BST: 1,
    CET: 1,
    MET: 1,
    MEZ: 1,
    CEST: 2,
    MEST: 2,
    MESZ: 2,
    MSZ: 2,
  },
  ...{ EET: 2, EEST: 3, SAST: 2, MSK: 3, MSD: 4, PKT: 5, IST: 5.5, ICT: 7, WIB: 7, HKT: 8, SGT: 8, AWST: 8, KST: 9 },
  ...{ JST: 9, ACST: 9.5, ACDT: 10.5, AEST: 10, AEDT: 11, NZST: 12, NZDT: 13, NST: -3.5, NDT: -2.5, BRT: -3, ART: -3 },
  ...{ BRST: -2, AST: -4, ADT: -3, EST: -5, EDT: -4, CST: -6, CDT: -5, MST: -7, MDT: -6, PST: -8, PDT: -7 },
  ...{ AKST: -9, AKDT: -8, HST: -10 },
}
const HOUR_MS = 3_600_000

/**
 * Reads a Date header. A date without a year is none, although JavaScript would add one. A date without a zone, or with
 * a zone that is not known, is in UTC.
 */
export function mailDate(header = ''): string | undefined {
  if (header.length > DATE_CHARACTERS || !YEAR.test(header)) return undefined
  const [comment = ''] = header.match(COMMENT) ?? []
  const date = header.replace(COMMENT, ' ').replace(/(\d)T(\d)/, '$1 $2')
  const [, untilTime = date, behind = ''] = TIME.exec(date) ?? []
  const [offset = '', sign, hours, minutes = '0'] = OFFSET.exec(behind) ?? []
  const [year = ''] = /\b\d{4}\b/.exec(behind.replace(offset, ' ')) ?? []
  const asUtc = isoDateIn(`${untilTime} ${year} UTC`)
  if (asUtc === undefined || offset === '') return asUtc && inZone(asUtc, zoneIn(behind) ?? zoneIn(comment))
  return shift(asUtc, Number(`${sign}1`) * (Number(hours) + Number(minutes) / 60))
}

function zoneIn(text: string): string | undefined {
  return /[A-Z][\w/]*/i.exec(text)?.[0]
}

function inZone(asUtc: string, zone = 'UTC'): string | undefined {
  const hours = ZONES[zone.toUpperCase()]
  if (hours !== undefined) return shift(asUtc, hours)
  // Old systems wrote names such as EST5EDT.
  if (!/[\d/]/.test(zone)) return asUtc
  try {
    return createZonedClock(zone)(asUtc.slice(0, '2024-05-01T10:00:00'.length))
  } catch {
    return asUtc
  }
}

function shift(asUtc: string, hoursAhead: number): string {
  return new Date(Date.parse(asUtc) - hoursAhead * HOUR_MS).toISOString()
}

/** Matches a date with the names of weekday and month, or an ISO date. */
const IN_SEPARATOR = /\b(?:[A-Z][a-z]{2},? +(?:[A-Z][a-z]{2} +\d{1,2}|\d{1,2} +[A-Z][a-z]{2})|\d{4}-\d\d-\d\d)\b.*$/

/** Returns the date in a separator of an mbox. Without a zone, it is in UTC (RFC 4155). */
export function separatorDate(separator = ''): string | undefined {
  return mailDate(IN_SEPARATOR.exec(separator.trimEnd())?.[0])
}
