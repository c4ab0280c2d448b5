import type { ParseThread, Preferences, Thread } from '@sluice/contract'
import { ProblemError } from './problem-error.ts'

/** Takes a request's body for a thread. @throws {ProblemError} with each fault. */
export function checkThread(parseThread: ParseThread, body: unknown, { strict }: Pick<Preferences, 'strict'>): Thread {
  const parsed = parseThread(body, { strict })
  if (parsed.ok) return parsed.thread
  const { errors, total } = parsed
  const detail = total === 1 ? 'The request has a fault; see errors.' : `The request has ${total} faults; see errors.`
  throw new ProblemError('request_invalid', { detail, errors, total })
}
