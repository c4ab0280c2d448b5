// Reads and checks the values of fields: scores, dates and lengths.

/** Returns whether a parsed JSON value is an object (not an array or null). */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Makes a check that a text has at most `limit` code points. */
export function hasAtMost(limit: number): (text: string) => boolean {
  return (text) => {
    if (text.length <= limit) return true
    // A code point has at most two code units.
    if (text.length > 2 * limit) return false
    let codePoints = 0
    for (const _ of text) codePoints++
    return codePoints <= limit
  }
}

type QuoteContent = { text: string } & Partial<
  Record<'speaker' | 'createdAt' | 'replyingTo', string | null | undefined>
>

/**
 * Returns the content that identifies a quote without an externalId. If several quotes of a request
 * have the same content, each is identified by the content and by the number of equal quotes before
 * it.
 */
export function contentOf({ speaker, createdAt, replyingTo, text }: QuoteContent): string {
  return JSON.stringify([speaker, createdAt, replyingTo, text])
}

export type Votes = Partial<Record<'upVotes' | 'downVotes' | 'score', number | undefined>>

/** Counts the characters of the text fields. No other fields of a source or a quote are long. */
export function textLength(fields: object): number {
  let characters = 0
  for (const value of Object.values(fields))
    if (typeof value === 'string') characters += value.length
  return characters
}

/**
 * Returns the score to show: the sent score, otherwise `upVotes` minus `downVotes`, of which a
 * missing one counts as 0. Returns undefined if neither is known, or if the difference exceeds the
 * range of a double.
 */
export function effectiveScore({ upVotes, downVotes, score }: Votes): number | undefined {
  if (score !== undefined) return score
  if (upVotes === undefined && downVotes === undefined) return undefined
  const difference = (upVotes ?? 0) - (downVotes ?? 0)
  return Number.isFinite(difference) ? difference : undefined
}

export const UNIT_SECONDS = new Map(
  Object.entries({ s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }),
)
export const DURATION_FORM = 'Write a number and a unit: 30m, 24h, 90d, 2w.'

/** Reads a duration as people write it, such as `30m`. Returns undefined for any other text. */
export function durationSeconds(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? []
  const seconds = UNIT_SECONDS.get(unit)
  return seconds === undefined ? undefined : Number(count) * seconds
}

// Groups: day; hours and minutes; `:` and seconds; decimals; sign and hours of the offset; minutes
// of the offset.
const DATE_FORM =
  /^((?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))(?:T((?:[01]\d|2[0-3]):[0-5]\d)(?:(:[0-5]\d)(?:[.,](\d+))?)?(?:Z|([+-](?:[01]\d|2[0-3]))(?::?([0-5]\d))?)?)?$/

/**
 * Reads a date of ISO 8601-1: a full date (midnight UTC), or a date and time with `Z`, with an
 * offset, or with neither (UTC). Returns the moment in UTC with milliseconds, and cuts off further
 * decimals. Returns undefined if the text has another form, names a day that does not exist, or is
 * outside the years 1 to 9999 of UTC.
 *
 * Works on the text, because it runs twice for the date of each quote, and `toISOString` alone
 * takes longer.
 */
export function parseIsoDate(text: string): string | undefined {
  const [, day, time = '00:00', seconds = ':00', decimals = '', hours, minutes = '00'] =
    DATE_FORM.exec(text) ?? []
  if (day === undefined || !existsInCalendar(day)) return undefined
  const utc = hours === undefined ? `${day}T${time}` : toUtc(`${day}T${time}${hours}:${minutes}`)
  return utc && `${utc}${seconds}.${decimals.slice(0, 3).padEnd(3, '0')}Z`
}

/**
 * Converts a day and time with an offset (`2024-05-01T09:30+02:00`) to UTC. Returns undefined
 * outside the years 1 to 9999, because many clients of MongoDB (Python's among them) can't read a
 * stored date before the year 1.
 */
function toUtc(time: string): string | undefined {
  const utc = new Date(time).toISOString()
  return /^(?!0000)\d{4}-/.test(utc) ? utc.slice(0, 16) : undefined
}

/** Checks that the day exists, because `Date` reads 30 February as a day in March. */
function existsInCalendar(day: string): boolean {
  const dayOfMonth = Number(day.slice(8))
  return dayOfMonth <= 28 || new Date(day).getUTCDate() === dayOfMonth
}
