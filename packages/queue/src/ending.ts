import type { Receipt } from './receipt.ts'

/** How a job ended, as it crosses Redis. */
export interface Ending {
  /** One for each thread; null for one that could not be stored. */
  receipts: (Receipt | null)[]
  /** Why it failed for good, where it did. */
  failure?: string
}

/** Reads what `end` wrote. */
export function parseEnding(text: string): Ending {
  return JSON.parse(text)
}
