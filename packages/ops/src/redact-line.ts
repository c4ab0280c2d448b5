const CUT = '[redacted]'

// What stands between "://" and the last "@" of the same authority (RFC 3986, section 3.2.1). The class excludes the
// slash, so that two matches never scan the same characters and a hostile line costs no more than its length.
const URL_CREDENTIALS = /:\/\/[^\s"/?#]*@/g

// The header as a field of a logged object, at any depth, with whatever was sent in it; and where an object was logged
// as text, so that its quotes are escaped.
const KEY_HEADER = /("x-api-key":\[?")(?:[^"\\]|\\.)*/gi
const KEY_HEADER_IN_TEXT = /(\\"x-api-key\\"\s*:\s*\\")[^"\\]*/gi

// A key of ours by its shape, for where it stands outside the header: in a message, a list of raw headers, a command.
const KEY = /slc_[0-9A-Za-z]+/g

/** Takes API keys and the credentials of URLs out of a finished log line, wherever they stand in it. */
export function redactLine(line: string): string {
  let redacted = line
  if (redacted.includes('://')) redacted = redacted.replace(URL_CREDENTIALS, `://${CUT}@`)
  if (redacted.includes('slc_')) redacted = redacted.replace(KEY, CUT)
  return redacted.replace(KEY_HEADER, `$1${CUT}`).replace(KEY_HEADER_IN_TEXT, `$1${CUT}`)
}
