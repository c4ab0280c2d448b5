// The messages of a WhatsApp export, whose dates have the form of the phone's region.
import type { InputFile, Place } from '../format.ts'
import { readLines } from '../read/lines.ts'
import { DAY_CHARACTERS } from '../values/iso-date.ts'
import { plainDate } from '../values/local-dates.ts'
import { MARKS, withoutTypography } from '../values/typography.ts'
import { createDateReader } from '../values/written-values.ts'

/**
 * A message may have several lines. Its `head` has date and speaker, which lines before the first
 * date lack.
 */
export interface Message {
  date?: string
  /** What stands behind the date: a bracket on an iPhone. */
  separator?: string
  speaker?: string
  head: string
  text: string
  place: Place
}

/**
 * Day and time with what a region writes between and behind them: `2024. 05. 01. 9:30`, `1.5.2024
 * klo 9.30`.
 */
const DATE = String.raw`\d{1,4}(?:[./-] ?\d{1,4}){2}(?:[.,]? klo?\.?)?[^\da-z]{1,5}(?:[ap]m )?\d{1,2}(?:[:.]\d\d){1,2}[\s.apmπμ]*`
const SPEAKER = String.raw`(?:([^:]{1,100}):(?=[\s\u200E\u200F]|$) ?)?`
/**
 * `[01.05.24, 09:30:15] Ada: …` of an iPhone, `01/05/2024, 9:30 am - Ada: …` of Android, `1/5/16,
 * 9:30:15: Ada: …`.
 */
const MESSAGE = new RegExp(String.raw`^${MARKS}\[?(${DATE})(\]| -|:) ${SPEAKER}(.*)$`, 'is')
/**
 * Begins a line that may begin with a date of other digits, of another calendar, or behind its
 * time.
 */
const MAY_BE_DATED = new RegExp(
  String.raw`^${MARKS}(?:\[${MARKS})?(?:\p{Nd}|[RH]\d|AP |令和|平成|民[國国])`,
  'u',
)
const LONGEST_HEAD = 60
/** Is of a chat whose dates can't be read, such as those of a calendar without numbers. */
const LOOKS_DATED =
  /^\W{0,3}[^:\n\]]{0,10}\p{Nd}{1,4}[^\p{Nd}\n]{1,4}\p{Nd}{1,2}[^\p{Nd}\n]{1,4}\p{Nd}{1,4}[^\p{Nd}\n]{1,12}\p{Nd}{1,2}[:.]\p{Nd}{2}[^\p{Nd}\n]{0,14}(?:\]| -) [^:\n]{1,100}: /u
/** Begins a chat as programs write those of Signal: in brackets, an iPhone writes seconds, too. */
export const OF_SIGNAL = /^\[\d{4}-\d\d-\d\d,? \d\d:\d\d\] [^:\n]{1,100}: /
/** Programs write such a date and a colon before the lines of a log. */
const OF_A_LOG = /^\d{4}-\d\d-\d\d \d/

/** Splits a line with which a message begins. Undefined for any other line. */
export function messageLine(line: string): Omit<Message, 'place'> | undefined {
  const [, date, separator = '', speaker, text = ''] =
    MESSAGE.exec(line) ?? localMessage(line) ?? []
  if (date === undefined || (separator === ':' && OF_A_LOG.test(date))) return undefined
  const head = line.slice(0, line.length - text.length)
  return { date, separator, head, text, ...(speaker && { speaker: nameOf(speaker) }) }
}

/** Whether a line begins a message as any language writes it. */
export function looksDated(line: string): boolean {
  return LOOKS_DATED.test(line)
}

/** WhatsApp writes `~` before the name that persons chose who are no contacts. */
function nameOf(speaker: string): string {
  const name = withoutTypography(speaker).trim()
  return name.replace(/^~ ?/, '') || name
}

function localMessage(line: string): RegExpExecArray | null {
  if (!MAY_BE_DATED.test(line)) return null
  const start = line.slice(0, LONGEST_HEAD)
  const end = start.includes('[') ? start.indexOf(']') : start.search(/ - |: /)
  return end === -1 ? null : MESSAGE.exec(plainDate(line.slice(0, end)) + line.slice(end))
}

/**
 * Yields the messages of a file in lists. An iPhone ends messages by CR LF, and lines within them
 * by LF, so pasted lines of a chat begin no message. Files that were joined have a byte order mark
 * where the next one begins, or a message in the form of another phone.
 */
export async function* messagesOf(file: InputFile): AsyncGenerator<Message[]> {
  const messages: Message[] = []
  let endsByCrLf: boolean | undefined
  let isEnded = true
  /**
   * What stands behind the date of the first message. In chats of other phones, a colon there is of
   * a person's text.
   */
  let first: string | undefined
  for await (const lines of readLines(file)) {
    for (const { bytes, line } of lines) {
      const whole = bytes.toString('utf8')
      const isJoined = whole.charCodeAt(0) === BYTE_ORDER_MARK
      const hasCr = whole.endsWith('\r')
      if (isJoined) [endsByCrLf, isEnded, first] = [undefined, true, undefined]
      endsByCrLf ??= hasCr
      const text = whole.slice(isJoined ? 1 : 0, hasCr ? -1 : undefined)
      const found = isEnded || !endsByCrLf ? messageLine(text) : undefined
      const open = messages.at(-1)
      first ??= found?.separator
      const begun = found?.separator === ':' && first !== ':' ? undefined : found
      if (begun !== undefined && begun.separator !== first) {
        endsByCrLf = hasCr
        if (first !== ':') first = begun.separator
      }
      if (begun === undefined && open !== undefined) open.text += `\n${text}`
      else messages.push({ ...(begun ?? { head: '', text }), place: { path: file.path, line } })
      isEnded = hasCr
    }
    // The last message may go on in the next lines.
    yield messages.splice(0, messages.length - 1)
  }
  yield messages
}

const BYTE_ORDER_MARK = 0xfeff

const DAY = /^\d{1,4}[./-] ?\d{1,4}[./-] ?\d{1,4}/
/** Koreans write the year first, also one of two digits, and no other language writes days so. */
const KOREAN = /^\d\d\. \d{1,2}\. \d{1,2}\. (?:[AP]M|오전|오후)/
/** WhatsApp began in this year. */
const FIRST_YEAR = '2009'
const DAY_MS = 86_400_000
/** WhatsApp writes this mark before its own words, on iPhones. */
export const MARK = '\u200E'

function orderedBy(dateFormat: string) {
  return {
    dateFormat,
    read: createDateReader({ dateFormat, isRecent: true }).read,
    last: '',
    faults: 0,
  }
}

/**
 * Finds the order in which most days are valid and ascend, because messages do. If two orders fit,
 * a clock with am and pm stands for the one of America. `isAssumed`: the day or the month may come
 * first, and they mean other days. `hasMarks`: WhatsApp marks its own words, as an iPhone does.
 * Android marks the names of files only.
 */
export async function surveyChat(lists: AsyncIterable<readonly Message[]>) {
  const [dayFirst, monthFirst, yearFirst] = [
    orderedBy('D/M/Y'),
    orderedBy('M/D/Y'),
    orderedBy('Y/M/D'),
  ]
  const tomorrow = new Date(Date.now() + DAY_MS).toISOString().slice(0, DAY_CHARACTERS)
  let [hasHalfDays, differ, hasMarks, isDated, known] = [false, false, false, false, '']
  for await (const messages of lists)
    for (const { date = '', separator, text } of messages) {
      hasMarks ||= separator === ']' && text.startsWith(MARK)
      isDated ||= date !== ''
      const [written = ''] = DAY.exec(date) ?? []
      // Most messages are of the same day as the one before.
      if (written === known) continue
      known = written
      hasHalfDays ||= /m\.?$/i.test(date)
      for (const reading of [dayFirst, monthFirst, yearFirst]) {
        const day = reading.read(written)?.slice(0, DAY_CHARACTERS) ?? ''
        if (day < reading.last || day < FIRST_YEAR || day > tomorrow) reading.faults += 1
        reading.last = day || reading.last
      }
      // No region writes the month first with full stops.
      if (/^\d{1,2}\./.test(written)) monthFirst.faults += 1
      if (KOREAN.test(date)) for (const reading of [dayFirst, monthFirst]) reading.faults += 1
      differ ||= dayFirst.last !== monthFirst.last
    }
  const isTie = monthFirst.faults === dayFirst.faults
  const likely =
    monthFirst.faults < dayFirst.faults || (isTie && hasHalfDays) ? monthFirst : dayFirst
  const isYearFirst = yearFirst.faults < likely.faults
  const { dateFormat } = isYearFirst ? yearFirst : likely
  return { dateFormat, isAssumed: differ && isTie && !isYearFirst, hasMarks, isDated }
}
