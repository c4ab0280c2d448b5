// The messages of a WhatsApp export, whose dates have the form of the phone's region.
import type { InputFile, Place } from '../format.ts'
import { readLines } from '../read/lines.ts'
import { DAY_CHARACTERS } from '../values/iso-date.ts'
import { createDateReader } from '../values/written-values.ts'

/** A message may have several lines. Its `head` has date and speaker, which lines before the first date lack. */
export interface Message {
  date?: string
  speaker?: string
  head: string
  text: string
  place: Place
}

/** Day and time with what a region writes between and behind them: `2024. 05. 01. 9:30`, `1.5.2024 klo 9.30`. */
const DATE = String.raw`\d{1,4}(?:[./-] ?\d{1,4}){2}(?:[.,]? klo?\.?)?[^\da-z]{1,5}\d{1,2}(?:[:.]\d\d){1,2}[\s.apmπμ]*`
/** `[01.05.24, 09:30:15] Ada: …` of an iPhone, `01/05/2024, 9:30 am - Ada: …` of Android. */
const MESSAGE = new RegExp(String.raw`^([\u200E\u200F]?\[?(${DATE})(?:\]| -) (?:([^:]{1,100}): ?)?)(.*)$`, 'is')

/** Splits a line with which a message begins. Undefined for any other line. */
export function messageLine(line: string): Omit<Message, 'place'> | undefined {
  const [, head = '', date, speaker, text = ''] = MESSAGE.exec(line) ?? []
  if (date === undefined) return undefined
  return { date, head, text, ...(speaker && { speaker: speaker.replace(/^[~\u200E\u202A]\s?/, '') }) }
}

/** Yields the messages of a file in lists. */
export async function* messagesOf(file: InputFile): AsyncGenerator<Message[]> {
  const messages: Message[] = []
  for await (const lines of readLines(file)) {
    for (const { bytes, line } of lines) {
      const text = bytes.toString('utf8').replace(/\r$/, '')
      const begun = messageLine(text)
      const open = messages.at(-1)
      if (begun === undefined && open !== undefined) open.text += `\n${text}`
      else messages.push({ ...(begun ?? { head: '', text }), place: { path: file.path, line } })
    }
    // The last message may go on in the next lines.
    yield messages.splice(0, messages.length - 1)
  }
  yield messages
}

/**
 * Finds the order in which most dates are valid and ascend, because messages do. If both orders fit, a clock with am
 * and pm stands for the one of America. `isAssumed`: both orders fit, and mean other days.
 */
export async function orderOfDates(lists: AsyncIterable<readonly Message[]>) {
  const dayFirst = { read: createDateReader({ dateFormat: 'D/M/Y' }).read, last: '', faults: 0 }
  const monthFirst = { read: createDateReader({ dateFormat: 'M/D/Y' }).read, last: '', faults: 0 }
  let [hasHalfDays, differ] = [false, false]
  for await (const messages of lists)
    for (const { date = '' } of messages) {
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
  return { isMonthFirst: faults < 0 || (faults === 0 && hasHalfDays), isAssumed: differ && faults === 0 }
}
