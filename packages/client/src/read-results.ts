// What became of each thread of an import, read from the answer as it arrives: a line of JSON for each thread, and a summary as the last line.
import type * as contract from './contract.ts'

/** A thread that is stored. After a broken connection, its outcome may be `unchanged` although the first try created it. */
export interface StoredItem extends contract.StoredItem {
  problem?: undefined
}

/** A thread that was refused, or whose storage was not confirmed. */
export interface FailedItem extends Omit<contract.RefusedItem, 'line'> {
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
