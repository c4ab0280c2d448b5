// Reads the messages of a WhatsApp export. The form of their dates depends on the phone's region.
import type { InputFile, Place } from '../format.ts'
import { CARRIAGE_RETURN, hasOldLineEnds, readLines } from '../read/lines.ts'
import { decodeBeginning, readBeginning } from '../read/utf8-chunks.ts'
import { DAY_CHARACTERS } from '../values/iso-date.ts'
import { plainDate } from '../values/local-dates.ts'
import { MARKS, withoutTypography } from '../values/typography.ts'
import { createDateReader } from '../values/written-values.ts'

/** A message. `head` has its date and its speaker. Lines before the first date have no `head`. */
export interface Message {
  date?: string
  /** What follows the date. On an iPhone, this is a bracket. */
  separator?: string
  speaker?: string
  head: string
  text: string
  place: Place
  /** Whether one of its lines is longer than a record may be, so that its text is cut. */
  isCut?: boolean
  /** Whether one of its lines looks like the first line of another message. */
  mayBeSeveral?: boolean
}

/** Matches a day and a time as regions write them: `2024. 05. 01. 9:30`, `1.5.2024 klo 9.30`. */
const DATE = String.raw`\d{1,4}(?:[./-] ?\d{1,4}){2}(?:[.,]? klo?\.?)?[^\da-z]{1,5}(?:[ap]m )?\d{1,2}(?:[:.]\d\d){1,2}[\s.apmπμ]*`
/** Names may contain a colon, such as `Bo:)`, but none in front of a space. */
const SPEAKER = String.raw`(?:((?:[^:]|:(?![\s\u200E\u200F])){1,100}):(?=[\s\u200E\u200F]|$) ?)?`
/**
 * Matches `[01.05.24, 09:30:15] Ada: …` (iPhone), `01/05/2024, 9:30 am - Ada: …` and `1/5/16,
 * 9:30:15: Ada: …` (Android).
 */
const MESSAGE = new RegExp(
  String.raw`^[${MARKS}\u00A0]*\[?(${DATE})(\]| -|:)[${MARKS}]* ${SPEAKER}(.*)$`,
  'is',
)
/** Matches a line that may have a date in other digits, of another calendar, or after its time. */
const MAY_BE_DATED = new RegExp(
  String.raw`^[${MARKS}\u00A0]*(?:\[[${MARKS}]*)?(?:\p{Nd}|[RH]\d|AP |令和|平成|民[國国])`,
  'u',
)
const LONGEST_HEAD = 60
/** Matches a line whose date can't be read, for example if its calendar has no numbers. */
const LOOKS_DATED =
  /^\W{0,3}[^:\n\]]{0,10}\p{Nd}{1,4}[^\p{Nd}\n]{1,4}\p{Nd}{1,2}[^\p{Nd}\n]{1,4}\p{Nd}{1,4}[^\p{Nd}\n]{1,12}\p{Nd}{1,2}(?:[:.]\p{Nd}{2}){1,2}[^\p{Nd}\n]{0,14}(?:\]| -) [^:\n]{1,100}: /u
/** Matches the beginning of a Signal chat. Unlike an iPhone's chat, it has no seconds. */
export const OF_SIGNAL = /^\[\d{4}-\d\d-\d\d,? \d\d:\d\d\] [^:\n]{1,100}: /
/** Matches a date that programs write, followed by a colon, in front of the lines of a log. */
const OF_A_LOG = /^\d{4}-\d\d-\d\d \d/

/** Splits the first line of a message. Returns undefined for any other line. */
export function messageLine(line: string): Omit<Message, 'place'> | undefined {
  const [, date, separator = '', speaker, text = ''] =
    MESSAGE.exec(line) ?? localMessage(line) ?? []
  if (date === undefined || (separator === ':' && OF_A_LOG.test(date))) return undefined
  const head = line.slice(0, line.length - text.length)
  return { date, separator, head, text, ...(speaker && { speaker: nameOf(speaker) }) }
}

/** Returns whether a line looks like the first line of a message, in any language. */
export function looksDated(line: string): boolean {
  return LOOKS_DATED.test(line)
}

/** WhatsApp writes `~` before the name that a person has chosen who is not a contact. */
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
 * Yields lists of a file's messages. An iPhone ends messages with CR LF, and lines within them with
 * LF, so pasted lines of a chat do not begin a message. In joined files, a byte order mark shows
 * where the next file begins, or a message in the form of another phone.
 */
export async function* messagesOf(file: InputFile): AsyncGenerator<Message[]> {
  const messages: Message[] = []
  const beginning = await readBeginning(file)
  let endsByCrLf: boolean | undefined = followCrLf(decodeBeginning(beginning).split('\n'))
  let isEnded = true
  /** The file's first separator. If it is no colon, a colon does not begin a message. */
  let first: string | undefined
  const lineEnd = hasOldLineEnds(beginning) ? CARRIAGE_RETURN : undefined
  for await (const lines of readLines(file, lineEnd)) {
    for (const { bytes, isTooLong, line } of lines) {
      const whole = bytes.toString('utf8')
      const isJoined = whole.charCodeAt(0) === BYTE_ORDER_MARK
      const hasCr = whole.endsWith('\r')
      if (isJoined) [endsByCrLf, isEnded, first] = [undefined, true, undefined]
      endsByCrLf ??= hasCr
      // A file that was converted twice has several.
      let end = whole.length
      while (whole[end - 1] === '\r') end -= 1
      const text = whole.slice(isJoined ? 1 : 0, end)
      const found = isEnded || !endsByCrLf ? messageLine(text) : undefined
      const open = messages.at(-1)
      first ??= found?.separator
      const begun = found?.separator === ':' && first !== ':' ? undefined : found
      if (begun !== undefined && begun.separator !== first) {
        endsByCrLf = hasCr
        if (first !== ':') first = begun.separator
      }
      if (begun === undefined && open !== undefined) open.text += `\n${text}`
      else if (begun !== undefined || text !== '')
        messages.push({ ...(begun ?? { head: '', text }), place: { path: file.path, line } })
      const last = messages.at(-1)
      if (isTooLong && last !== undefined) last.isCut = true
      if (last === open && last !== undefined && (isEnded || !endsByCrLf) && looksDated(text))
        last.mayBeSeveral = true
      isEnded = hasCr
    }
    // The last message may continue in the next lines.
    yield messages.splice(0, messages.length - 1)
  }
  yield messages
}

const BYTE_ORDER_MARK = 0xfeff

/**
 * Returns whether messages end with CR LF, by the lines of a file's beginning. Somebody may have
 * pasted a few CR LF into a file of LF, or many lines of a chat into an iPhone's message, which may
 * be the first.
 */
function followCrLf(lines: readonly string[]): boolean {
  const separators = lines.map((line) => messageLine(line)?.separator)
  const first = separators.find((one) => one !== undefined)
  const before = lines.filter((_, at) => first !== undefined && separators[at + 1] === first)
  const ended = before.filter((line) => line.endsWith('\r'))
  const least = first === ']' || lines[0]?.endsWith('\r') ? 0.1 : 0.5
  return ended.length > 0 && ended.length >= before.length * least
}

const DAY = /^\d{1,4}[./-] ?\d{1,4}[./-] ?\d{1,4}/
/** Koreans write the year first, even if it has two digits, and the half of the day before the time. */
const KOREAN = /^\d\d(?:\. |\/)\d{1,2}(?:\. |\/)\d{1,2}\.? (?:[AP]M|오전|오후)/
const DAY_MS = 86_400_000
/** On iPhones, WhatsApp writes this mark in front of its own words. */
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
 * Finds the order in which most days are valid and ascend, because messages ascend. If two orders
 * fit, a clock with am and pm suggests America's, whose days and months have no leading zeros.
 * `isAssumed`: day and month could be swapped, which would give other days.
 * `hasMarks`: WhatsApp marks its own words, as on an iPhone. (Android only marks the names of
 * files.)
 */
export async function surveyChat(lists: AsyncIterable<readonly Message[]>) {
  const [dayFirst, monthFirst, yearFirst] = [
    orderedBy('D/M/Y'),
    orderedBy('M/D/Y'),
    orderedBy('Y/M/D'),
  ]
  const tomorrow = new Date(Date.now() + DAY_MS).toISOString().slice(0, DAY_CHARACTERS)
  const has = { halfDays: false, zeros: false, marks: false, dates: false }
  let [differ, known] = [false, '']
  for await (const messages of lists)
    for (const { date = '', separator, text } of messages) {
      has.marks ||= separator === ']' && text.startsWith(MARK)
      has.dates ||= date !== ''
      const [written = ''] = DAY.exec(date) ?? []
      // Most messages have the same day as the previous one.
      if (written === known) continue
      known = written
      has.halfDays ||= /m\.?$/i.test(date)
      has.zeros ||= /^0|[/.-]0/.test(written)
      for (const reading of [dayFirst, monthFirst, yearFirst]) {
        const day = reading.read(written)?.slice(0, DAY_CHARACTERS) ?? ''
        if (day < reading.last || day === '' || day > tomorrow) reading.faults += 1
        reading.last = day || reading.last
      }
      // No region that writes full stops puts the month first.
      if (/^\d{1,2}\./.test(written)) monthFirst.faults += 1
      if (KOREAN.test(date)) for (const reading of [dayFirst, monthFirst]) reading.faults += 1
      differ ||= dayFirst.last !== monthFirst.last
    }
  const isTie = monthFirst.faults === dayFirst.faults
  const isAmerican = has.halfDays && !has.zeros
  const likely =
    monthFirst.faults < dayFirst.faults || (isTie && isAmerican) ? monthFirst : dayFirst
  const isYearFirst = yearFirst.faults < likely.faults
  const { dateFormat } = isYearFirst ? yearFirst : likely
  const isAssumed = differ && isTie && !isYearFirst
  return { dateFormat, isAssumed, hasMarks: has.marks, isDated: has.dates }
}
