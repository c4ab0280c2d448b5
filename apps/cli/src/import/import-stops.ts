// Ends an import: when the user says so, when it fails, or after too many rejected records.

import type { Tally } from './account/ledger.ts'
import { TooManyErrors } from './failures.ts'
import type { ImportDeps } from './import-request.ts'
import { counted } from './show/summary.ts'

/** Requests in flight may last this long after an import was stopped. */
const GRACE_MS = 10_000

export interface Stops {
  stopping: AbortSignal
  hurry: AbortSignal
  fail: (error: unknown) => void
  /** Stops once too many records were rejected. The tally counts the last one only after this. */
  afterErrors: (tally: Tally, most: number) => void
}

export function createStops({ interrupted, hurry }: ImportDeps): Stops {
  const failed = new AbortController()
  const late = new AbortController()
  const stopping = AbortSignal.any([interrupted, failed.signal])
  stopping.addEventListener('abort', () => {
    setTimeout(() => late.abort(stopping.reason), GRACE_MS).unref()
  })
  return {
    stopping,
    hurry: AbortSignal.any([hurry, late.signal]),
    fail: (error) => failed.abort(error),
    afterErrors({ threads }, most) {
      if (threads.rejected < most) return
      failed.abort(
        new TooManyErrors(`More than ${counted(most, 'records were')} rejected. Allow more with --max-errors.`),
      )
    },
  }
}
