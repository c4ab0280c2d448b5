import { ProblemError } from '../problem-error.ts'
import { CallerGoneError } from '../read-body.ts'

/**
 * What went wrong with reading a batch, if anything.
 *
 * @throws {CallerGoneError} where its connection broke, and whatever is no problem of the caller's.
 */
export async function failureOf(running: Promise<void>): Promise<ProblemError | undefined> {
  try {
    await running
    return undefined
  } catch (error) {
    if (error instanceof ProblemError) return error
    if (error instanceof Error && 'code' in error && GONE_CODES.has(String(error.code)))
      throw new CallerGoneError('the caller hung up')
    throw error
  }
}

const GONE_CODES = new Set(['ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE'])
