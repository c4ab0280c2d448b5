// The lines of a WhatsApp export. A message begins with its date, and may have further lines.
import type { InputFile, Place } from '../format.ts'
import { createBoundedBytes, LONGEST_RECORD_BYTES } from '../read/bounded-bytes.ts'
import { utf8Chunks } from '../read/utf8-chunks.ts'

export interface Line {
  /** The date as it stands, if a message begins here. */
  date?: string
  speaker?: string
  text: string
  place: Place
}

const SPACES = String.raw`[ \u00A0\u2009\u202F]`
/** `1.5.2024`, and `2024. 05. 01.` in Hungary and Korea, `01.05.2024.` in Croatia, `1.05.2024 г.` in Bulgaria. */
const DAY = String.raw`\d{1,4}[./-] ?\d{1,2}[./-] ?\d{1,4}\.?(?: г\.)?`
/** In Finnish, Danish and French, a word may stand before the time. */
const AT = '(?: klo| kl\\.?| à)?'
/** In Chinese, Japanese and Korean, the half of the day stands before the time. */
const HALF = '(?:上午|下午|午前|午後|오전|오후)'
const TIME = String.raw`\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:${SPACES}?(?:[ap]\.?${SPACES}?m\.?|[πμ]\.μ\.))?`
/** `[01.05.24, 09:30:15] Ada: …` of an iPhone, `01/05/2024, 9:30 am - Ada: …` of Android. */
const DATE = `${DAY},?${AT}${SPACES}(?:${HALF}${SPACES}?)?${TIME}`
const IPHONE = new RegExp(String.raw`^[\u200E\u200F]?\[(${DATE})\] (.*)$`, 'is')
const ANDROID = new RegExp(String.raw`^[\u200E\u200F]?(${DATE}) - (.*)$`, 'is')
const SPEAKER = /^([^:]{1,100}): ?(.*)$/s
const NEWLINE = 0x0a

/** Splits a line with which a message begins. Undefined for any other line. */
export function messageLine(line: string): Omit<Line, 'place'> | undefined {
  const [, date, rest = ''] = IPHONE.exec(line) ?? ANDROID.exec(line) ?? []
  if (date === undefined) return undefined
  const [, speaker, text] = SPEAKER.exec(rest) ?? []
  return speaker === undefined
    ? { date, text: rest }
    : { date, speaker: speaker.replace(/^[~\u200E\u202A]\s?/, ''), text: text ?? '' }
}

/** Yields the lines of a file in lists. */
export async function* linesOf(file: InputFile): AsyncGenerator<Line[]> {
  const content = createBoundedBytes(LONGEST_RECORD_BYTES)
  let number = 0
  const endLine = (): Line => {
    const text = content.take().bytes.toString('utf8').replace(/\r$/, '')
    number += 1
    return { ...(messageLine(text) ?? { text }), place: { path: file.path, line: number } }
  }
  for await (const chunk of utf8Chunks(file)) {
    const lines: Line[] = []
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      content.add(chunk.subarray(start, end))
      lines.push(endLine())
      start = end + 1
    }
    content.add(chunk.subarray(start))
    yield lines
  }
  const last = endLine()
  yield last.text === '' && last.date === undefined ? [] : [last]
}
