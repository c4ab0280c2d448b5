// The messages of a WhatsApp export, whose dates have the form of the phone's region.
import type { InputFile, Place } from '../format.ts'
import { readLines } from '../read/lines.ts'
import { DAY_CHARACTERS } from '../values/iso-date.ts'
import { createDateReader } from '../values/written-values.ts'

/** A message begins with its date, and may have further lines. Lines before the first date have none. */
export interface Message {
  date?: string
  speaker?: string
  text: string
  place: Place
}

/** `1.5.2024`, and `2024. 05. 01.` in Hungary and Korea, `01.05.2024.` in Croatia, `1.05.2024 г.` in Bulgaria. */
const DAY = String.raw`\d{1,4}[./-] ?\d{1,2}[./-] ?\d{1,4}`
const TIME = String.raw`\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?(?:[ap]\.?\s?m\.?|[πμ]\.μ\.))?`
/** In Chinese, Japanese and Korean, the half of the day stands before the time. In Finnish and French, a word may. */
const BEFORE_TIME = String.raw`(?: klo| kl\.?| à)?\s(?:(?:上午|午前|오전|下午|午後|오후)\s?)?`
const DATE = String.raw`${DAY}\.?(?: г\.)?,?${BEFORE_TIME}${TIME}`
const PARTS = new RegExp(String.raw`^(${DAY}).*?\s(?:([上下午오].)\s?)?(\d{1,2}[:.]\d[^πμ]*)([πμ])?`, 'i')
const MORNING = /^(上午|午前|오전|π)$/i
/** `[01.05.24, 09:30:15] Ada: …` of an iPhone, `01/05/2024, 9:30 am - Ada: …` of Android. */
const MESSAGE = new RegExp(String.raw`^[\u200E\u200F]?(?:\[(${DATE})\]|(${DATE}) -) (?:([^:]{1,100}): ?)?(.*)$`, 'is')

/** Splits a line with which a message begins. Undefined for any other line. */
export function messageLine(line: string): Omit<Message, 'place'> | undefined {
  const [, bracketed, written = bracketed, speaker, text = ''] = MESSAGE.exec(line) ?? []
  if (written === undefined) return undefined
  return { date: dateOf(written), text, ...(speaker && { speaker: speaker.replace(/^[~\u200E\u202A]\s?/, '') }) }
}

/** Returns a date without the words of its language. */
function dateOf(written: string): string {
  const [, day = '', before, time = '', half = before] = PARTS.exec(written) ?? []
  return `${day}, ${time}${half === undefined ? '' : MORNING.test(half) ? 'a' : 'p'}`
}

/** Yields the messages of a file in lists. */
export async function* messagesOf(file: InputFile): AsyncGenerator<Message[]> {
  let open: Message | undefined
  for await (const lines of readLines(file)) {
    const ended: Message[] = []
    for (const { bytes, line } of lines) {
      const text = bytes.toString('utf8').replace(/\r$/, '')
      const begun = messageLine(text)
      if (begun === undefined && open !== undefined) open.text += `\n${text}`
      else {
        if (open !== undefined) ended.push(open)
        open = { ...(begun ?? { text }), place: { path: file.path, line } }
      }
    }
    yield ended
  }
  yield open === undefined ? [] : [open]
}

/**
 * Finds the order in which most dates are valid and ascend, because messages do. If both orders fit, a clock with am
 * and pm stands for the one of America. `isAssumed`: both orders fit, and mean other days.
 */
export async function orderOfDates(lists: AsyncIterable<readonly Message[]>) {
  const dayFirst = { read: createDateReader({ dateFormat: 'D/M/Y' }).read, last: '', faults: 0 }
  const monthFirst = { read: createDateReader({ dateFormat: 'M/D/Y' }).read, last: '', faults: 0 }
  let hasHalfDays = false
  let differ = false
  for await (const messages of lists)
    for (const { date } of messages) {
      if (date === undefined) continue
      hasHalfDays ||= /m\.?$/i.test(date)
      for (const reading of [dayFirst, monthFirst]) {
        const day = reading.read(date)?.slice(0, DAY_CHARACTERS)
        if (day === undefined || day < reading.last) reading.faults += 1
        reading.last = day ?? reading.last
      }
      // No region writes the month first with full stops.
      if (/^\d{1,2}\./.test(date)) monthFirst.faults += 1
      differ ||= dayFirst.last !== monthFirst.last
    }
  const faults = monthFirst.faults - dayFirst.faults
  const isMonthFirst = faults < 0 || (faults === 0 && hasHalfDays)
  return { isMonthFirst, isAssumed: differ && faults === 0 }
}
