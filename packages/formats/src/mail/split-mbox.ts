// Splits an mbox file into its mails.

/** A mail as it stands in its file. */
export interface RawMail {
  bytes: Buffer
  /** The line before it in an mbox. */
  separator?: string
  /** The line of its first header, from 1. */
  line: number
  /** It is longer than the bound: `bytes` are only its beginning. */
  isTooLong: boolean
}

/** A mail is read into memory as a whole. Providers let through 25 to 50 MiB. */
export const MAX_MAIL_BYTES = 64 * 1024 * 1024

const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const SEPARATOR = Buffer.from('\nFrom ')
/** A blank line and all but the last byte of a separator's beginning. */
const HELD_BYTES = 10
/** A longer line is no separator. */
const MAX_LINE_BYTES = 1000
/** Lines of text begin with `From ` too. A separator also has a time and a year, of any program. */
const ENVELOPE = /^From .*\d{1,2}:\d{2}.*\b\d{4}\b/

/** Returns whether a file that begins so is an mbox. */
export function isMbox(beginning: Buffer): boolean {
  return ENVELOPE.test(beginning.subarray(0, MAX_LINE_BYTES).toString('latin1'))
}

/**
 * A line `From …` separates mails only behind a blank line and with a date. A line of text that begins with `>From `,
 * or with more than one `>`, loses one `>` ("mboxrd"). A `Content-Length` is not believed. Memory: the largest mail.
 *
 * @see https://www.rfc-editor.org/rfc/rfc4155
 */
export async function* splitMbox(stream: AsyncIterable<Buffer>): AsyncGenerator<RawMail> {
  const mail = createMail()
  // As if a blank line stood before the first line, which is a separator, too.
  let data: Buffer = Buffer.from('\n\n')
  let isAtStart = true
  for await (const chunk of stream) {
    data = Buffer.concat([data, chunk])
    let separator = findSeparator(data, isAtStart)
    while (separator?.end !== undefined) {
      mail.add(data.subarray(0, separator.start))
      if (mail.hasBegun()) yield mail.end()
      mail.begin(data.subarray(separator.start, separator.end))
      data = data.subarray(separator.end)
      isAtStart = true
      separator = findSeparator(data, isAtStart)
    }
    const held = Math.max(0, separator ? separator.start - 3 : data.length - HELD_BYTES)
    mail.add(data.subarray(0, held))
    data = data.subarray(held)
    isAtStart &&= held === 0
  }
  mail.add(data)
  if (mail.hasBegun()) yield mail.end()
}

/** Returns where the next separator begins, and where its line ends if that is known. */
function findSeparator(data: Buffer, isAtStart: boolean): { start: number; end?: number } | undefined {
  for (let i = data.indexOf(SEPARATOR); i !== -1; i = data.indexOf(SEPARATOR, i + 1)) {
    if (!isBehindBlankLine(data, i, isAtStart)) continue
    const end = data.indexOf(NEWLINE, i + 1) + 1
    if (end === 0 && data.length - i < MAX_LINE_BYTES) return { start: i + 1 }
    if (end > 0 && isMbox(data.subarray(i + 1, end))) return { start: i + 1, end }
  }
  return undefined
}

function isBehindBlankLine(data: Buffer, newline: number, isAtStart: boolean): boolean {
  const before = data[newline - 1] === CARRIAGE_RETURN ? newline - 2 : newline - 1
  return before < 0 ? isAtStart : data[before] === NEWLINE
}

function createMail() {
  let chunks: Buffer[] = []
  let bytes = 0
  let line = -1
  let firstLine: number | undefined
  let from = ''
  return { hasBegun: () => firstLine !== undefined, add, begin, end }

  function add(part: Buffer) {
    line += countLines(part)
    bytes += part.length
    if (bytes <= MAX_MAIL_BYTES) chunks.push(part)
  }

  function begin(separator: Buffer) {
    line += countLines(separator)
    firstLine = line
    from = separator.toString('latin1')
    chunks = []
    bytes = 0
  }

  function end(): RawMail {
    const isTooLong = bytes > MAX_MAIL_BYTES
    return { bytes: unquote(Buffer.concat(chunks)), separator: from, line: firstLine ?? 1, isTooLong }
  }
}

function countLines(part: Buffer): number {
  let lines = 0
  for (let i = part.indexOf(NEWLINE); i !== -1; i = part.indexOf(NEWLINE, i + 1)) lines++
  return lines
}

function unquote(mail: Buffer): Buffer {
  if (!mail.includes('>From ')) return mail
  return Buffer.from(mail.toString('latin1').replace(/^>(>*From )/gm, '$1'), 'latin1')
}
