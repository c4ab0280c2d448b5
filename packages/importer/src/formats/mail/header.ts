// Finds headers of mails, and reads what a header says about its part of a mail.

/** Matches the beginning of a header. */
const HEADER_LINE = /^[!-9;-~]+[ \t]*:/
/** Names of headers that mails have, and with which sentences and settings rarely begin. */
const NAMES = [
  'from|sender|to|cc|date|subject|message-id|in-reply-to|references|newsgroups|mime-version|content-type',
  'return-path|received(-spf)?|delivered-to|status|x-[\\w-]+',
  // Servers put their signatures first. These may be longer than the part of a header that is read.
  'dkim-signature|domainkey-signature|arc-[\\w-]+|authentication-results|list-[\\w-]+|reply-to|path|xref',
]
const KNOWN_HEADERS = new RegExp(`^(${NAMES.join('|')})[ \\t]*:`, 'gim')

/** Returns whether the text begins with a line of a header. */
export function isHeaderLine(text: string): boolean {
  return HEADER_LINE.test(text)
}

/**
 * Returns whether the text begins with a header that has at least this number of names from mails.
 */
export function hasHeader(text: string, atLeast = 1): boolean {
  if (!HEADER_LINE.test(text)) return false
  const end = text.search(/\n\r*\n/)
  const known = (end === -1 ? text : text.slice(0, end)).match(KNOWN_HEADERS) ?? []
  return known.length >= atLeast
}

/**
 * Matches what may precede a header: another separator (perhaps quoted), blank lines, and the byte
 * order mark of a file that was joined to others.
 */
const BETWEEN =
  /^(?:From (?![ \t]*:)[^\n]*\n)?(?:[ \t\r]*\n|>+From [^\n]*\n|\u00EF\u00BB\u00BF|\uFEFF)*/

/** Returns what precedes the header, after the beginning of a mail or after its separator. */
export function beforeHeader(text: string): string {
  return BETWEEN.exec(text)?.[0] ?? ''
}

const [NEWLINE, CARRIAGE_RETURN, HYPHEN, SPACE] = [0x0a, 0x0d, 0x2d, 0x20]
/** Matches a line of spaces in front of a line that is neither a header nor a folded one. */
const SPACES_BEFORE_TEXT = /^ [ \t\r]*\n(?![!-9;-~]+[ \t]*:|[ \t])/
/** A longer text is not the name of a header. */
export const HEADER_NAME_BYTES = 200

/**
 * Returns where the body begins: after the first blank line, or at a line that begins with `--`,
 * like a boundary. Without either, returns the end of the mail.
 */
export function bodyStart(mail: Buffer, headerStart: number): number {
  let start = headerStart
  for (let end = mail.indexOf(NEWLINE, start); end !== -1; end = mail.indexOf(NEWLINE, start)) {
    if (isBlank(mail, start, end)) return end + 1
    // Some programs write a space into the blank line.
    const isSpace = mail[start] === SPACE
    if (isSpace && SPACES_BEFORE_TEXT.test(mail.toString('latin1', start, end + HEADER_NAME_BYTES)))
      return end + 1
    if (mail[start] === HYPHEN && mail[start + 1] === HYPHEN && start > headerStart) return start
    start = end + 1
  }
  return mail.length
}

/** Returns whether a line is blank. Files converted twice have several carriage returns. */
export function isBlank(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] !== CARRIAGE_RETURN) return false
  return true
}

/** A part of a mail, or the mail itself. */
export interface Part {
  type: string
  /** The encoding of the body, if it has one. */
  transfer: string | undefined
  charset: string | undefined
  boundary: string | undefined
  /** Whether a space at the end of a line marks a soft line break (`format=flowed`). */
  isFlowed: boolean
  /** Whether this space does not belong to the text. */
  deletesSpaces: boolean
  /** Whether the part is a file, rather than a text. */
  isFile: boolean
  /** Whether the part has an id, by which the HTML beside it may show it. */
  hasContentId: boolean
}

const TYPE = /^content-type[ \t]*:[ \t"]*([^\s;"]+)(.*)/im
const TRANSFER = /^content-transfer-encoding[ \t]*:[ \t"]*(base64|quoted-printable)/im
const CONTENT_ID = /^content-id[ \t]*:[ \t]*\S/im
const ATTACHED = /^content-disposition[ \t]*:[ \t"]*attachment/im

const [CHARSET, BOUNDARY, FORMAT, DELSP] = ['charset', 'boundary', 'format', 'delsp'].map(
  (name) =>
    new RegExp(`[;\\s]${name}(?:\\*0)?\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"?|([^\\s;]+))`, 'i'),
)

/**
 * Matches what separates the pieces of a long parameter, `boundary*0="a"; boundary*1="b"` (RFC
 * 2231).
 */
const CONTINUED = /(?:"|(?<!["\s]))\s*;\s*[\w-]+\*[1-9]\d?\s*=\s*"?/g

/** Reads the header of a part. If a header occurs twice, the first one counts. */
export function readPart(header: string, defaultType: string): Part {
  const unfolded = header.replace(/(?<!\r)\r*\n[ \t]+/g, ' ')
  const [, type = '', ofType = ''] = TYPE.exec(unfolded) ?? []
  const params = ofType.includes('*1') ? ofType.replaceAll(CONTINUED, '') : ofType
  return {
    type: type.toLowerCase() || defaultType,
    transfer: TRANSFER.exec(unfolded)?.[1]?.toLowerCase(),
    charset: paramIn(params, CHARSET),
    boundary: paramIn(params, BOUNDARY),
    isFlowed: paramIn(params, FORMAT)?.toLowerCase() === 'flowed',
    deletesSpaces: paramIn(params, DELSP)?.toLowerCase() === 'yes',
    isFile: ATTACHED.test(unfolded),
    hasContentId: CONTENT_ID.test(unfolded),
  }
}

function paramIn(params: string, name: RegExp | undefined): string | undefined {
  const [, quoted, plain] = name?.exec(params) ?? []
  return quoted?.replaceAll(/\\(.)/g, '$1') ?? plain
}
