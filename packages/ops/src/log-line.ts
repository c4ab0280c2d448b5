// Redacts each line of the log, and passes it to the writer of blocks.
import type { DestinationStream } from 'pino'
import type { SonicBoom } from 'sonic-boom'

/** Writes lines as buffers, because in the writer's text mode each line costs three times as much. */
export function createLineWriter(stdout: SonicBoom): DestinationStream & { flush: (done: () => void) => void } {
  return {
    write: (line) => void (stdout.destroyed || stdout.write(Buffer.from(line))),
    flush: (done) => (stdout.destroyed ? done() : stdout.flush(done)),
  }
}

const REDACTED = '[redacted]'

// The text between "://" and the last "@" of the same authority (RFC 3986, section 3.2.1). The class excludes the
// slash, so two matches never scan the same characters and a hostile line costs no more than its length.
const URL_CREDENTIALS = /:\/\/[^\s"/?#]*@/g

// The header as a field of a logged object, at any depth, with any value; also in an object that was logged as text,
// with escaped quotes.
const KEY_HEADER = /("x-api-key":\[?")(?:[^"\\]|\\.)*/gi
const KEY_HEADER_IN_TEXT = /(\\"x-api-key\\"\s*:\s*\\")[^"\\]*/gi

// An API key by its shape, for keys outside the header: in a message, a path, a list of raw headers, a command. A path
// may encode the underscore.
const KEY = /slc(?:_|%5f)[0-9a-z]+/gi

/** Removes API keys from a text that is logged, stored or answered: a caller may put its key in the wrong place. */
export function redactKeys(text: string): string {
  return text.includes('slc') ? text.replace(KEY, REDACTED) : text
}

/**
 * Removes API keys and the credentials of URLs from a finished line: pino's `redact` finds paths only, and a secret may
 * be in any text.
 */
export function redactLine(line: string): string {
  let redacted = redactKeys(line)
  if (redacted.includes('://')) redacted = redacted.replace(URL_CREDENTIALS, `://${REDACTED}@`)
  return redacted.replace(KEY_HEADER, `$1${REDACTED}`).replace(KEY_HEADER_IN_TEXT, `$1${REDACTED}`)
}
