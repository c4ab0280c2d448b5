// Splits items that exceed one command into chunks.
/** A command must not exceed 16 MiB, and a character takes three bytes at most. */
export const CHARACTERS_PER_COMMAND = 3_000_000
/** If the first command takes longer, MongoDB is slow, and the others are sent `WRITES_AT_ONCE` at a time. */
const SLOW_MS = 500
const WRITES_AT_ONCE = 4
/** If it takes less, the others may be this many times as large: a large command costs less for each write. */
const FAST_MS = 100
const FAST_TIMES = 4

/**
 * Sends items in as many commands as they need. The first one has at most `maxItems`, and its time decides about the
 * others: they are larger if MongoDB is fast, and several are sent at once if it is slow. After a failure, it sends no
 * further command.
 */
export async function sendInChunks<Item>(
  items: readonly Item[],
  maxItems: number,
  charactersOf: (item: Item) => number,
  send: (chunk: Item[]) => Promise<void>,
): Promise<void> {
  const [first] = chunksOf(items, maxItems, charactersOf)
  if (first === undefined) return
  const began = performance.now()
  await send(first)
  const ms = performance.now() - began
  const most = ms < FAST_MS ? maxItems * FAST_TIMES : maxItems
  await sendAll(chunksOf(items.slice(first.length), most, charactersOf), ms > SLOW_MS ? WRITES_AT_ONCE : 1, send)
}

/** Sends all chunks, `atOnce` at a time. After a failure, it sends no other. */
export async function sendAll<Item>(chunks: Generator<Item[]>, atOnce: number, send: (chunk: Item[]) => Promise<void>) {
  async function sendNext(): Promise<void> {
    // A loop that throws ends the generator, and so the other loops.
    for (const chunk of chunks) await send(chunk)
  }
  await Promise.all(Array.from({ length: atOnce }, sendNext))
}

/** Returns the items in chunks for one command each. */
export function* chunksOf<Item>(items: readonly Item[], maxItems: number, charactersOf = (_: Item) => 0) {
  let chunk: Item[] = []
  let characters = 0
  for (const item of items) {
    const more = charactersOf(item)
    if (chunk.length === maxItems || (chunk.length > 0 && characters + more > CHARACTERS_PER_COMMAND)) {
      yield chunk
      chunk = []
      characters = 0
    }
    chunk.push(item)
    characters += more
  }
  if (chunk.length > 0) yield chunk
}
