// Finds headers of mails.

/** Matches the beginning of a header. */
const HEADER_LINE = /^[!-9;-~]+[ \t]*:/
/** Headers that mails have, and that sentences and settings rarely begin with. */
const NAMES = [
  'from|sender|to|cc|date|subject|message-id|in-reply-to|references|newsgroups|mime-version|content-type',
  'return-path|received(-spf)?|delivered-to|status|x-[\\w-]+',
  // Signatures of servers stand first, and may be longer than what is read of a header.
  'dkim-signature|domainkey-signature|arc-[\\w-]+|authentication-results|list-[\\w-]+|reply-to|path|xref',
]
const KNOWN_HEADERS = new RegExp(`^(${NAMES.join('|')})[ \\t]*:`, 'gim')

/** Whether the text begins with a line of a header. */
export function isHeaderLine(text: string): boolean {
  return HEADER_LINE.test(text)
}

/**
 * Whether the text begins with a header that has at least this number of lines which are known from
 * mails.
 */
export function hasHeader(text: string, atLeast = 1): boolean {
  if (!HEADER_LINE.test(text)) return false
  const end = text.search(/\n\r*\n/)
  const known = (end === -1 ? text : text.slice(0, end)).match(KNOWN_HEADERS) ?? []
  return known.length >= atLeast
}

/**
 * Matches another separator, also a quoted one, blank lines, and the byte order mark of a joined
 * file.
 */
const BETWEEN =
  /^(?:From (?![ \t]*:)[^\n]*\n)?(?:[ \t\r]*\n|>+From [^\n]*\n|\u00EF\u00BB\u00BF|\uFEFF)*/

/** Returns what stands between the beginning of a mail, or its separator, and its header. */
export function beforeHeader(text: string): string {
  return BETWEEN.exec(text)?.[0] ?? ''
}

const [NEWLINE, CARRIAGE_RETURN, HYPHEN] = [0x0a, 0x0d, 0x2d]

/**
 * Returns where the body behind a header begins: behind the first blank line, or at a line that
 * begins with `--`, as boundaries do, else at the end of the mail.
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

/**
 * Whether a line has nothing but carriage returns: a file that was converted twice has several at
 * each line end.
 */
export function isBlank(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] !== CARRIAGE_RETURN) return false
  return true
}
