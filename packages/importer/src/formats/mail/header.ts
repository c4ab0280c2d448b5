// Finds headers of mails.

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

/** Returns whether the text begins with a header of at least this number of mails' names. */
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

const [NEWLINE, CARRIAGE_RETURN, HYPHEN] = [0x0a, 0x0d, 0x2d]

/**
 * Returns where the body begins: after the first blank line, or at a line that begins with `--`,
 * like a boundary. Without either, returns the end of the mail.
 */
export function bodyStart(mail: Buffer, headerStart: number): number {
  let start = headerStart
  for (let end = mail.indexOf(NEWLINE, start); end !== -1; end = mail.indexOf(NEWLINE, start)) {
    if (isBlank(mail, start, end)) return end + 1
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
