// Creates the log of a process on stdout. It is written in blocks, and never blocks the process.

import {
  type DestinationStream,
  type LevelWithSilent,
  type Logger,
  pino,
  stdSerializers,
  stdTimeFunctions,
} from 'pino'
import type { SonicBoom } from 'sonic-boom'
import sonicBoom from 'sonic-boom'

// Members of sonic-boom that its types lack.
declare module 'sonic-boom' {
  interface SonicBoom {
    readonly destroyed: boolean
    /** For the `contentMode` `buffer`. */
    write(line: Buffer): boolean
  }
}

// Lines are written in blocks, at most 100 ms late, because a separate write would cost more than
// the line.
const BLOCK_BYTES = 65_536
const FLUSH_MS = 100
/**
 * Bounds what is buffered while the reader does not read, or the disk is full. Newer lines are then
 * dropped, because a process must outlive its reader, and counted.
 */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024
/**
 * When the process exits, it tries this number of times, 100 ms apart, to write the last lines to a
 * slow reader.
 */
const EXIT_TRIES = 3

/** Logs errors of ioredis without their command, whose arguments contain the texts of threads. */
const serializers = {
  err(error: unknown): unknown {
    if (!(error instanceof Error)) return error
    const { command: _, ...shown } = stdSerializers.err(error)
    return shown
  },
}

/**
 * Creates a logger that writes one JSON object a line, without API keys and credentials, by default
 * to stdout.
 */
export function createLogger(
  name: string,
  level: LevelWithSilent,
  destination?: DestinationStream,
): Logger {
  const timestamp = stdTimeFunctions.isoTime
  const formatters = { level: (label: string) => ({ level: label }) }
  const log: Logger = pino(
    { name, level, timestamp, formatters, serializers, hooks: { streamWrite: redactLine } },
    destination ?? bufferedStdout((lines) => log.warn({ lines }, 'log.dropped')),
  )
  return log
}

/**
 * Opens pino's writer (sonic-boom) in a newer version than `pino.destination` has. Before version
 * 5, its flush at exit never ends if stdout has lost its reader.
 */
function bufferedStdout(onDropped: (lines: number) => void): DestinationStream {
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
  // A full disk is tried again, every FLUSH_MS. Otherwise, the log has lost its reader, and the
  // process continues without a log.
  stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code !== 'ENOSPC' && code !== 'EDQUOT') stdout.destroy()
  })
  let dropped = 0
  stdout.on('drop', () => (dropped += 1))
  stdout.on('drain', () => {
    if (dropped > 0) onDropped(dropped)
    dropped = 0
  })
  process.on('exit', () => {
    triesLeft = EXIT_TRIES
    try {
      if (!stdout.destroyed) stdout.flushSync()
    } catch {
      // The reader has ended or is too slow. The exit code matters more than the last lines.
    }
  })
  return createLineWriter(stdout)
}

/** Writes lines as buffers, because a line costs three times as much in the writer's text mode. */
function createLineWriter(
  stdout: SonicBoom,
): DestinationStream & { flush: (done: () => void) => void } {
  return {
    write: (line) => void (stdout.destroyed || stdout.write(Buffer.from(line))),
    flush: (done) => (stdout.destroyed ? done() : stdout.flush(done)),
  }
}

const REDACTED = '[redacted]'

// The text between "://" and the last "@" of the same authority (RFC 3986, section 3.2.1). The
// pattern excludes the slash, so two matches never scan the same characters, and a hostile line
// takes only linear time.
const URL_CREDENTIALS = /:\/\/[^\s"/?#]*@/g

// The header as a field of a logged object or, with escaped quotes, of an object that was logged as
// text.
const KEY_HEADER = /("x-api-key":\[?")(?:[^"\\]|\\.)*/gi
const KEY_HEADER_IN_TEXT = /(\\"x-api-key\\"\s*:\s*\\")[^"\\]*/gi

// Any text that has the form of an API key. In a path, the underscore may be encoded.
const KEY = /slc(?:_|%5f)[0-9a-z]+/gi

/**
 * Removes API keys from a text that is logged, stored or answered, because a caller may put its key
 * in the wrong place.
 */
export function redactKeys(text: string): string {
  return text.includes('slc') ? text.replace(KEY, REDACTED) : text
}

/**
 * Removes keys and credentials from a finished line. (pino's `redact` only knows paths, but a
 * secret may be in any text.)
 */
function redactLine(line: string): string {
  let redacted = redactKeys(line)
  if (redacted.includes('://')) redacted = redacted.replace(URL_CREDENTIALS, `://${REDACTED}@`)
  return redacted.replace(KEY_HEADER, `$1${REDACTED}`).replace(KEY_HEADER_IN_TEXT, `$1${REDACTED}`)
}
