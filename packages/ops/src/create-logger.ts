import { type DestinationStream, type Level, type Logger, pino, stdTimeFunctions } from 'pino'
import { redactLine } from './redact-line.ts'

// Lines leave in blocks of 4 KB, at the latest after 100 ms: a write for each would cost more than the line itself.
const BLOCK_BYTES = 4096
const FLUSH_MS = 100

/**
 * A logger that writes one JSON object a line, with ISO 8601 times, and with keys and credentials taken out. It writes
 * to stdout unless told otherwise, buffered; what is in the buffer is written when the process exits.
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

function bufferedStdout(): DestinationStream {
  return pino.destination({ dest: 1, sync: false, minLength: BLOCK_BYTES, periodicFlush: FLUSH_MS })
}
