// Splits an mbox file into its mails.
import { type Bounded, createBoundedBytes } from '../read/bounded-bytes.ts'
import { beforeHeader, hasHeader, isBlank, isHeaderLine } from './header.ts'

/**
 * A mail of a file: its bytes without the separator, and without the quoting that an mbox adds.
 * `line`: the number of its first line in the file, from 1.
 */
export interface RawMail extends Bounded {
  separator?: string
  line: number
}

/** Each mail is read into memory. Providers accept mails of 25 to 50 MiB. */
export const MAX_MAIL_BYTES = 64 * 1024 * 1024

/** A longer line is not a separator. */
const MAX_SEPARATOR_BYTES = 1000
/** This number of bytes after a line shows whether a header follows. */
const HEADER_BYTES = 4096

/**
 * The forms of a line that separates mails. The first one that matches counts. Git writes the date
 * of `patch` into every patch.
 */
const FORMS = [
  { form: 'patch', pattern: /^From [\da-f]{40,64} Mon Sep 17 00:00:00 2001/ },
  {
    form: 'dated',
    pattern:
      /^From (?=.*\d:\d\d)(?=.*\b\d{4}(?!\d)).*\b[A-Z][a-z]{2},? +([A-Z][a-z]{2} +\d{1,2}|\d{1,2} +[A-Z][a-z]{2})\b/,
  },
  { form: 'bare', pattern: /^From \s*(?:-\s*|-?\d+\s*)?$/ },
  { form: 'timed', pattern: /^From (?=.*\d:\d\d)(?=.*\b\d{4}\b)/ },
  { form: 'word', pattern: /^From \S+\s*$/ },
  { form: 'other', pattern: /^From / },
] as const

type Form = (typeof FORMS)[number]['form']

/** Returns undefined for the header `From :` and for other lines. */
function formOf(line: string): Form | undefined {
  return /^From [ \t]*:/.test(line)
    ? undefined
    : FORMS.find(({ pattern }) => pattern.test(line))?.form
}

/** The surroundings of a line that may be a separator. */
interface Around {
  isBehindBlank: boolean
  /** The form of the file's first separator. */
  first: Form | undefined
}

interface Separator {
  text: string
  form: Form
  /** What is between the separator and the header of its mail. */
  between: string
}

/**
 * Returns the separator, or undefined if the line separates no mails. A line with a date, or a bare
 * one, separates mails if a header follows it. A line of another form may be a sentence, or part of
 * a patch in a mail. So it counts only after a blank line, and only if the file's first separator
 * has the same form.
 */
function asSeparator(
  text: string,
  following: string,
  { isBehindBlank, first }: Around,
): Separator | undefined {
  const form = formOf(text)
  const isUsual = form === 'dated' || form === 'bare'
  if (form === undefined || !(isUsual || first === undefined || (form === first && isBehindBlank)))
    return undefined
  const between = beforeHeader(following)
  const header = following.slice(between.length)
  const isPlain = form === 'dated' && isBehindBlank && between === ''
  return hasHeader(header) || (isPlain && isHeaderLine(header))
    ? { text, form, between }
    : undefined
}

/** Returns whether this is the beginning of an mbox. Its separator may have any form. */
export function isMbox(beginning: string): boolean {
  const end = beginning.indexOf('\n')
  const around: Around = { isBehindBlank: true, first: undefined }
  return asSeparator(beginning.slice(0, end), beginning.slice(end + 1), around) !== undefined
}

const NEWLINE = 0x0a
const FROM = Buffer.from('From ')
/** If files were joined, there may be byte order marks within the file. */
const BYTE_ORDER_MARK = Buffer.from('\uFEFF')

/**
 * Splits an mbox at its separators. If a line of text begins with `>From `, or with more than one
 * `>`, removes one `>` ("mboxrd"). Ignores `Content-Length`, because it is often wrong. Keeps
 * only the largest mail in memory. See https://www.rfc-editor.org/rfc/rfc4155.
 */
export async function* splitMbox(stream: AsyncIterable<Buffer>): AsyncGenerator<RawMail> {
  const splitter = createSplitter()
  for await (const chunk of stream) yield* splitter.add(chunk, false)
  yield* splitter.add(Buffer.alloc(0), true)
}

function createSplitter() {
  const content = createBoundedBytes(MAX_MAIL_BYTES)
  let mail: Omit<RawMail, keyof Bounded> | undefined
  const around: Around = { isBehindBlank: true, first: undefined }
  /** What can't be judged yet: a line without its end, a separator without its header. */
  let rest: Buffer = Buffer.alloc(0)
  let isMidLine = false
  let line = 1

  function* endMail(): Generator<RawMail> {
    const { bytes, isTooLong } = content.take()
    if (mail !== undefined) yield { ...mail, bytes: unquote(bytes), isTooLong }
  }

  function separatorAt(data: Buffer, start: number, end: number): Separator | undefined {
    const text = data.toString('latin1', data.indexOf(FROM, start), end)
    const separator = asSeparator(
      text,
      data.toString('latin1', end + 1, end + 1 + HEADER_BYTES),
      around,
    )
    around.first ??= separator?.form
    return separator
  }

  /** Reads the lines of a chunk. If a line is too long for a separator, passes it on. */
  function* add(chunk: Buffer, isLast: boolean): Generator<RawMail> {
    const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let [begin, start] = [0, 0]
    let end = data.indexOf(NEWLINE)
    for (; end !== -1; end = data.indexOf(NEWLINE, start)) {
      const mayBe = !isMidLine && end - start <= MAX_SEPARATOR_BYTES && beginsWithFrom(data, start)
      if (mayBe && !isLast && data.length - end <= HEADER_BYTES) break
      const separator = mayBe ? separatorAt(data, start, end) : undefined
      around.isBehindBlank = !isMidLine && isBlank(data, start, end)
      isMidLine = false
      line += 1
      if (separator !== undefined) {
        content.add(data.subarray(begin, start))
        yield* endMail()
        line += countLines(separator.between)
        mail = { separator: separator.text, line }
        begin = end + 1 + separator.between.length
      }
      start = Math.max(begin, end + 1)
    }
    if (isLast || (end === -1 && data.length - start > MAX_SEPARATOR_BYTES)) {
      isMidLine = true
      start = data.length
    }
    content.add(data.subarray(begin, start))
    rest = data.subarray(start)
    if (isLast) yield* endMail()
  }
  return { add }
}

function beginsWithFrom(data: Buffer, start: number): boolean {
  const at = data[start] === BYTE_ORDER_MARK[0] ? start + BYTE_ORDER_MARK.length : start
  return data[at] === FROM[0] && data.subarray(at, at + FROM.length).equals(FROM)
}

function countLines(text: string): number {
  return text.split('\n').length - 1
}

function unquote(mail: Buffer): Buffer {
  if (!mail.includes('>From ')) return mail
  return Buffer.from(mail.toString('latin1').replace(/^>(>*From )/gm, '$1'), 'latin1')
}
