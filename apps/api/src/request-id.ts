import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** At most 128 visible ASCII characters: what may safely stand in a header and in a log. */
const TAKEN_OVER = /^[\x21-\x7e]{1,128}$/

/** The caller's own X-Request-Id where it can be taken over, else a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id']
  return typeof given === 'string' && TAKEN_OVER.test(given) ? given : randomUUID()
}
