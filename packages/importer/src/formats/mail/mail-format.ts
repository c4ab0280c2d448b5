// Reads mailboxes: mbox files, and folders of mails with a file each.
import type { Format, FormatOptions, Found, InputFile, Place } from '../format.ts'
import { eachFile, skipped } from '../format.ts'
import { createBoundedBytes } from '../read/bounded-bytes.ts'
import { readBeginning } from '../read/utf8-chunks.ts'
import { readMail } from './mail-message.ts'
import { isMbox, MAX_MAIL_BYTES, type RawMail, splitMbox } from './split-mbox.ts'

const MAILS_PER_LIST = 100
/** Matches the first header. A separator may stand before it, which a program copied from an mbox. */
const HEADER = /^(From [^:\n]*\n)?\uFEFF?\s*[!-9;-~]+[ \t]*:/
const KNOWN_HEADER = /^(return-path|received|delivered-to|from|to|date|subject|message-id|mime-version|x-[\w-]+):/im
/** Maildir marks a mail that is to be deleted by the flag T. */
const TRASHED = /:2,[A-Z]*T[A-Z]*$/

/** Reads mails, whose conversations become sources. Memory: the largest mail, several times while it is parsed. */
export const mailFormat: Format = {
  name: 'mail',
  description: 'Mails (mbox files, folders of .eml files, Maildir)',
  options: ['stripQuotes'],
  // What a server is still writing lies in `tmp`.
  owns: (files) => {
    const maildirs = new Set(files.map(({ path }) => maildirOf(path, 'cur|new')))
    return (path) => maildirs.has(maildirOf(path, 'tmp') ?? NOWHERE)
  },
  recognises: async (files, beginning) => {
    const [first] = files.filter(({ path }) => /\.(mbox|mbx|eml)$/i.test(path)).concat(files)
    if (!first) return false
    const bytes = await beginning(first)
    return isMbox(bytes) || (isMail(bytes) && KNOWN_HEADER.test(bytes.toString('latin1')))
  },
  read: eachFile(readFile),
}

const NOWHERE = '?'

/** Returns the Maildir of a file in one of these folders. */
function maildirOf(path: string, folders: string): string | undefined {
  return new RegExp(`^(|.*/)(?:${folders})/[^/]+$`).exec(path)?.[1]
}

async function* readFile(file: InputFile, options: FormatOptions): AsyncGenerator<readonly Found[]> {
  if (TRASHED.test(file.path)) return yield [skipped('mails that were deleted', { path: file.path })]
  const beginning = await readBeginning(file)
  if (!isMbox(beginning) && !isMail(beginning)) return yield [skipped('files without mails', { path: file.path })]
  const stream = file.open()
  let found: Found[] = []
  for await (const mail of isMbox(beginning) ? splitMbox(stream) : [await readWhole(stream)]) {
    const place: Place = { path: file.path, line: mail.line }
    found.push(...(await readMail(mail, place, options)))
    if (found.length < MAILS_PER_LIST) continue
    yield found
    found = []
  }
  yield found
}

async function readWhole(stream: AsyncIterable<Buffer>): Promise<RawMail> {
  const content = createBoundedBytes(MAX_MAIL_BYTES)
  for await (const chunk of stream) content.add(chunk)
  const { bytes, isTooLong } = content.take()
  return { bytes: withoutSeparator(bytes), line: 1, isTooLong }
}

function withoutSeparator(mail: Buffer): Buffer {
  const isSeparator = /^From [^:\n]*$/.test(mail.subarray(0, mail.indexOf('\n')).toString('latin1'))
  return isSeparator ? mail.subarray(mail.indexOf('\n') + 1) : mail
}

function isMail(beginning: Buffer): boolean {
  return HEADER.test(beginning.toString('utf8'))
}
