// Reads mailboxes: mbox files, and folders with a file for each mail.
import type { Format, FormatOptions, Found, FoundLists, InputFile, Place } from '../format.ts'
import { orRejected, rejectedFile, skipped } from '../format.ts'
import { createBoundedBytes } from '../read/bounded-bytes.ts'
import { hasOldLineEnds } from '../read/lines.ts'
import { decodeBeginning, readBeginning, utf8Chunks } from '../read/utf8-chunks.ts'
import { hasHeader, isHeaderLine } from './header.ts'
import { readMail } from './mail-message.ts'
import { isMbox, MAX_MAIL_BYTES, type RawMail, splitMbox } from './split-mbox.ts'

/** A list, which is in memory, has at most this number of mails, and fewer if they are large. */
const MAILS_PER_LIST = 100
const BYTES_PER_LIST = 1024 * 1024
/** A mail to be deleted: Maildir marks it by T, MH by a comma or `#`. Some names have no `:`. */
const TRASHED = /[:;!]2,[A-SU-Za-z]*T[A-Za-z]*$|(^|\/)[,#]\d+$/

/** Reads conversations of mails as sources. Needs several times the memory of the largest mail. */
export const mailFormat: Format = {
  name: 'mail',
  title: 'mail',
  description: 'Mails (mbox files, folders of .eml or .emlx files, Maildir)',
  sourceIs: 'a conversation',
  howTo:
    "a folder of Thunderbird's profile, Apple Mail: Mailbox, Export Mailbox, Gmail: takeout.google.com",
  options: ['stripQuotes'],
  // A server puts a mail into `tmp` while it is still writing it.
  owns: deliveriesOf,
  recognises: (file, beginning) => {
    const text = beginningOf(beginning)
    return isMbox(text) || hasHeader(text, isSingle(file) ? 1 : 2)
  },
  async *read(files, options) {
    const isDelivery = deliveriesOf(files)
    for (const file of files) {
      if (isDelivery(file.path))
        yield [skipped('files in tmp of a Maildir, which are no mails yet', { path: file.path })]
      else yield* orRejected(file, readFile(file, options))
    }
  },
}

const IN_MAILDIR = /(^|\/)(cur|new)\/[^/]+$/
const IN_TMP = /(^|\/)tmp\/[^/]+$/

function deliveriesOf(files: readonly InputFile[]): (path: string) => boolean {
  const mails = files.filter(({ path }) => IN_MAILDIR.test(path))
  const maildirs = new Set(mails.map(({ path }) => folderAbove(path)))
  return (path) => IN_TMP.test(path) && maildirs.has(folderAbove(path))
}

/** A file that the user has named is rejected, because the user expects it to have mails. */
function withoutMails(file: InputFile, isPacked: boolean): Found {
  if (file.isNamed && !isPacked) return rejectedFile(file, NO_MAIL)
  return skipped(isPacked ? COMPRESSED : OTHERS, { path: file.path })
}

/** Returns the Maildir to which a file in `cur`, `new` or `tmp` belongs. */
function folderAbove(path: string): string {
  return path.split('/').slice(0, -2).join('/')
}

/** A single mail, by its name: its header then need not look like a mail's header. */
function isSingle({ path }: InputFile): boolean {
  return /\.emlx?$/i.test(path) || IN_MAILDIR.test(path)
}

async function* readFile(file: InputFile, options: FormatOptions): FoundLists {
  if (TRASHED.test(file.path))
    return yield [skipped('mails that were deleted', { path: file.path })]
  const beginning = await readBeginning(file)
  const text = beginningOf(beginning)
  const isMail = isSingle(file) ? isHeaderLine(text) : hasHeader(text)
  if (!isMbox(text) && !isMail) return yield [withoutMails(file, isCompressed(beginning))]
  const stream = hasOldLineEnds(beginning) ? withNewlines(utf8Chunks(file)) : utf8Chunks(file)
  let found: Found[] = []
  let bytes = 0
  try {
    for await (const mail of isMbox(text) ? splitMbox(stream) : [await readWhole(stream)]) {
      const place: Place = { path: file.path, line: mail.line }
      found.push(...(await readMail(mail, place, options)))
      bytes += mail.bytes.length
      if (found.length < MAILS_PER_LIST && bytes < BYTES_PER_LIST) continue
      yield found
      found = []
      bytes = 0
    }
  } catch (error) {
    // The mails before the damaged part can be read.
    yield found
    throw error
  }
  yield found
}

const NO_MAIL = 'The file has no mail: it begins with neither a header nor `From `.'
const OTHERS = 'files without mails'
const COMPRESSED =
  'files that are compressed without a name that says so (gunzip or unzstd them first)'
const GZIP = Buffer.from([0x1f, 0x8b])
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** Dovecot compresses the mails of a Maildir without changing their names. */
function isCompressed(beginning: Buffer): boolean {
  return [GZIP, ZSTD].some((magic) => beginning.subarray(0, magic.length).equals(magic))
}

/** Returns the beginning of a file, from its separator or its header on. */
function beginningOf(bytes: Buffer): string {
  const text = decodeBeginning(bytes)
  return (hasOldLineEnds(bytes) ? text.replaceAll('\r', '\n') : text)
    .replace(COUNT, '')
    .replace(/^(\s|>+From [^\n]*\n)+/, '')
}

async function* withNewlines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks)
    yield Buffer.from(chunk.toString('latin1').replaceAll('\r', '\n'), 'latin1')
}

/** In an `.emlx` file, the mail's length is in front of it, and properties are after it. */
const COUNT = /^(\d+)\s*\n/
const COUNT_BYTES = 20

async function readWhole(stream: AsyncIterable<Buffer>): Promise<RawMail> {
  const content = createBoundedBytes(MAX_MAIL_BYTES)
  for await (const chunk of stream) content.add(chunk)
  const { bytes, isTooLong } = content.take()
  const [count = '', length] = COUNT.exec(bytes.toString('latin1', 0, COUNT_BYTES)) ?? []
  const mail =
    length === undefined ? bytes : bytes.subarray(count.length, count.length + Number(length))
  return { bytes: mail, isTooLong, line: 1 }
}
