import { isUtf8 } from 'node:buffer'
import { ProblemError } from './problem-error.ts'

const BYTE_ORDER_MARK = '\ufeff'

/** Reads JSON text in UTF-8. @throws {ProblemError} where the bytes are no UTF-8, or the text is no JSON (RFC 8259). */
export function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw new ProblemError('body_unreadable', { detail: 'The body is not valid UTF-8.' })
  const text = body.toString('utf8')
  try {
    return JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
  } catch (error) {
    throw new ProblemError('json_invalid', { detail: `The body is not valid JSON${whereOf(error)}.` })
  }
}

/** V8 tells the place; the rest of its message repeats what was sent. */
function whereOf(error: unknown): string {
  const place =
    error instanceof Error ? /at position \d+( \(line \d+ column \d+\))?/.exec(error.message)?.[0] : undefined
  return place === undefined ? '' : ` ${place}`
}
