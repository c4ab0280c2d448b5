// Writes a process's log: one redacted JSON object a line, in blocks, without ever holding the process up.
import { type DestinationStream, type Level, type Logger, pino, stdTimeFunctions } from 'pino'
import sonicBoom from 'sonic-boom'

// Lines are written in blocks, at the latest after 100 ms: one write per line would cost more than the line itself.
const BLOCK_BYTES = 65_536
const FLUSH_MS = 100
/** The most that is buffered for a reader that does not read; newer lines are dropped, because a process must outlive its log's reader. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024
/** How often the last lines are offered to a slow reader when the process exits, 100 ms apart. */
const EXIT_TRIES = 3

/**
 * Creates a logger that writes one JSON object a line, with ISO 8601 times, and without API keys and credentials. It writes
 * to stdout by default, buffered; the buffer is written when the process exits.
 */
export function createLogger({
  name,
  level,
  destination = bufferedStdout(),
}: {
  name: string
  level: Level | 'silent'
  destination?: DestinationStream
}): Logger {
  const timestamp = stdTimeFunctions.isoTime
  const formatters = { level: (label: string) => ({ level: label }) }
  return pino({ name, level, timestamp, formatters, hooks: { streamWrite: redactLine } }, destination)
}

// What sonic-boom has and its types lack.
declare module 'sonic-boom' {
  interface SonicBoom {
    readonly destroyed: boolean
    /** Where `contentMode` is `buffer`. */
    write(line: Buffer): boolean
  }
}

/**
 * pino's own writer, sonic-boom, in a newer version than `pino.destination` has: before version 5 its flush at exit never
 * ends where stdout has lost its reader. Buffers, because in its text mode each line costs three times as much.
 */
function bufferedStdout(): DestinationStream {
  let triesLeft = Number.POSITIVE_INFINITY
  const stdout = new sonicBoom.SonicBoom({
    fd: 1,
    contentMode: 'buffer',
    minLength: BLOCK_BYTES,
    maxWrite: 2 * BLOCK_BYTES,
    maxLength: MAX_BUFFERED_BYTES,
    periodicFlush: FLUSH_MS,
    retryEAGAIN: () => --triesLeft > 0,
  })
  // Without a reader there is nothing left to do for the log; the process goes on.
  stdout.on('error', () => stdout.destroy())
  process.on('exit', () => {
    triesLeft = EXIT_TRIES
    if (!stdout.destroyed) flushLast(stdout)
  })
  return { write: (line) => void (stdout.destroyed || stdout.write(Buffer.from(line))) }
}

function flushLast(stdout: sonicBoom.SonicBoom): void {
  try {
    stdout.flushSync()
  } catch {
    // The reader is gone or too slow; the exit code matters more than the last lines.
  }
}

const REDACTED = '[redacted]'

// The text between "://" and the last "@" of the same authority (RFC 3986, section 3.2.1). The class excludes the slash,
// so two matches never scan the same characters and a hostile line costs no more than its length.
const URL_CREDENTIALS = /:\/\/[^\s"/?#]*@/g

// The header as a field of a logged object, at any depth, with any value; and the same in an object that was logged as
// text, with escaped quotation marks.
const KEY_HEADER = /("x-api-key":\[?")(?:[^"\\]|\\.)*/gi
const KEY_HEADER_IN_TEXT = /(\\"x-api-key\\"\s*:\s*\\")[^"\\]*/gi

// An API key by its shape, for keys outside the header: in a message, a list of raw headers, a command.
const KEY = /slc_[0-9A-Za-z]+/g

/** Removes API keys and the credentials of URLs from a finished line: pino's `redact` takes paths, and a secret may be in any text. */
function redactLine(line: string): string {
  let redacted = line
  if (redacted.includes('://')) redacted = redacted.replace(URL_CREDENTIALS, `://${REDACTED}@`)
  if (redacted.includes('slc_')) redacted = redacted.replace(KEY, REDACTED)
  return redacted.replace(KEY_HEADER, `$1${REDACTED}`).replace(KEY_HEADER_IN_TEXT, `$1${REDACTED}`)
}
