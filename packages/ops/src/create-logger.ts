import { type DestinationStream, type Level, type Logger, pino, stdTimeFunctions } from 'pino'
import { createLineWriter } from './line-writer.ts'
import { redactLine } from './redact-line.ts'

/**
 * A logger that writes one JSON object a line, with ISO 8601 times, and with keys and credentials taken out. It writes
 * to stdout unless told otherwise, buffered; what is in the buffer is written when the process exits.
 */
export function createLogger({
  name,
  level,
  destination = createLineWriter(1),
}: {
  name: string
  level: Level | 'silent'
  destination?: DestinationStream
}): Logger {
  const timestamp = stdTimeFunctions.isoTime
  const formatters = { level: (label: string) => ({ level: label }) }
  return pino({ name, level, timestamp, formatters, hooks: { streamWrite: redactLine } }, destination)
}
