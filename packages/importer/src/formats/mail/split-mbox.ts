// Splits an mbox file into its mails.
import { type Bounded, createBoundedBytes } from '../read/bounded-bytes.ts'

/**
 * A mail of a file: its bytes without the separator, and without the quoting of an mbox. `line`: its first line in the
 * file, from 1.
 */
export interface RawMail extends Bounded {
  separator?: string
  line: number
}

/** A longer mail is rejected, because each is read into memory. Providers accept mails of 25 to 50 MiB. */
export const MAX_MAIL_BYTES = 64 * 1024 * 1024

/** A longer line is no separator. */
const MAX_SEPARATOR_BYTES = 1000
/** A separator has a time and a year, whichever program wrote it. Lines of text may begin with `From ` too. */
const SEPARATOR = /^From .*\d{1,2}:\d{2}.*\b\d{4}\b/

/** Whether the text begins with a separator of mails, as each mbox does. */
export function isMbox(beginning: Buffer): boolean {
  return SEPARATOR.test(beginning.toString('latin1', 0, MAX_SEPARATOR_BYTES))
}

const [NEWLINE, CARRIAGE_RETURN] = [0x0a, 0x0d]

/**
 * A line `From …` separates mails only behind a blank line and with a date. A line of text that begins with `>From `,
 * or with more than one `>`, loses one `>` ("mboxrd"). `Content-Length` is ignored, because it is often wrong. Memory:
 * the largest mail. See https://www.rfc-editor.org/rfc/rfc4155.
 */
export async function* splitMbox(stream: AsyncIterable<Buffer>): AsyncGenerator<RawMail> {
  const content = createBoundedBytes(MAX_MAIL_BYTES)
  let mail: Omit<RawMail, keyof Bounded> | undefined
  const endMail = () => {
    const { bytes, isTooLong } = content.take()
    return mail === undefined ? [] : [{ ...mail, bytes: unquote(bytes), isTooLong }]
  }
  /** The beginning of a line whose end has not come yet. */
  let rest: Buffer = Buffer.alloc(0)
  let isBehindBlank = true
  let line = 0
  for await (const chunk of stream) {
    const data = Buffer.concat([rest, chunk])
    let [begin, start] = [0, 0]
    for (let end = data.indexOf(NEWLINE); end !== -1; end = data.indexOf(NEWLINE, start)) {
      line += 1
      if (isBehindBlank && isMbox(data.subarray(start, end))) {
        content.add(data.subarray(begin, start))
        yield* endMail()
        mail = { separator: data.toString('latin1', start, end), line: line + 1 }
        begin = end + 1
      }
      isBehindBlank = end === start || (end === start + 1 && data[start] === CARRIAGE_RETURN)
      start = end + 1
    }
    // A line this long is no separator. So all of it is passed on but two bytes, which show that the line is not blank.
    if (data.length - start > MAX_SEPARATOR_BYTES) {
      isBehindBlank = false
      start = data.length - 2
    }
    content.add(data.subarray(begin, start))
    rest = data.subarray(start)
  }
  content.add(rest)
  yield* endMail()
}

function unquote(mail: Buffer): Buffer {
  if (!mail.includes('>From ')) return mail
  return Buffer.from(mail.toString('latin1').replace(/^>(>*From )/gm, '$1'), 'latin1')
}
