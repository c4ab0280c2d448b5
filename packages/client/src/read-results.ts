// What became of each thread of an import, read from the answer as it arrives: a line of JSON for each thread, and a summary as the last line.
import type { Outcome, Problem } from './contract.ts'

/** A thread that is stored. */
export interface StoredItem {
  /** The thread's place in the input, from 0. */
  index: number
  externalId?: string
  status: 200
  /** The effect on the source and its quotes together. After a broken connection it may be `unchanged` for what the first try created. */
  outcome: Outcome
  /** Identifier of the stored source. It never changes. */
  id: string
  /** Words in all stored quotes of the source. */
  wordCount: number
  /** The quotes of this thread, counted by outcome. */
  quotes: Record<Outcome, number>
  problem?: undefined
}

/** A thread that was refused, or whose storage was not confirmed. */
export interface FailedItem {
  /** The thread's place in the input, from 0. */
  index: number
  /** Absent if the thread has none. */
  externalId?: string
  status: number
  /** What `POST /sources` would have answered. */
  problem: Problem
  outcome?: undefined
}

/** What became of one thread. */
export type ItemResult = StoredItem | FailedItem

/** Yields results as they arrive, several at a time. A line that is cut counts as missing. Throws if the connection breaks. */
export async function* readResults(response: Response): AsyncGenerator<readonly ItemResult[]> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    // The last one is not complete yet, or empty.
    rest = lines.pop() ?? ''
    const values = lines.map((line) => JSON.parse(line))
    yield values.filter((value) => value.summary === undefined)
  }
}
