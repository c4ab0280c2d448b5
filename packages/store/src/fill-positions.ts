// Gives positions to quotes that were stored before positions were.
import type { PlacedQuote } from './commands.ts'
import { positionAt } from './drafts.ts'
import { type GuardedWrite, type WriteDeps, writeGuarded } from './write-threads.ts'

interface FillDeps extends WriteDeps {
  repair: boolean
}

/** Returns how many quotes of these sources have no position. With `repair` it gives them one, until no write is refused. */
export async function checkPositions({ repair, ...deps }: FillDeps, sourceIds: readonly string[]): Promise<number> {
  let quotes = 0
  for (const { _id, quoteCount } of await deps.commands.countWithoutPosition(sourceIds)) {
    quotes += quoteCount
    if (repair) await fill(deps, _id)
  }
  return quotes
}

async function fill({ commands, runtime }: WriteDeps, sourceId: string): Promise<void> {
  for (let left = 1; left > 0; ) {
    const quotes: PlacedQuote[] = []
    for await (const quote of commands.scanQuotes(sourceId)) quotes.push(quote)
    const version = runtime.newId()
    const writes = missingPositions(quotes).map(({ quote, position }): GuardedWrite => {
      return { id: quote._id, read: quote.meta.version, update: { $set: { position, 'meta.version': version } } }
    })
    left = (await writeGuarded(commands, 'quotes', writes, version)).size
  }
}

/**
 * Returns positions for the quotes that have none. The oldest kept stamp stands for the request that gave the quote first: no later position is possible. The index of quotes
 * of one stamp follows their dates, those without one first, then their ids. It counts the quotes that have a position too, so that a repair that was interrupted goes on
 * with the same indices.
 */
function missingPositions(quotes: readonly PlacedQuote[]): { quote: PlacedQuote; position: string }[] {
  const sorted = quotes.toSorted((one, other) => dateOf(one) - dateOf(other) || (one._id < other._id ? -1 : 1))
  const next = new Map<number, number>()
  return sorted.flatMap((quote) => {
    const stamp = oldestStamp(quote)
    const index = next.get(stamp) ?? 0
    next.set(stamp, index + 1)
    return quote.position === undefined ? [{ quote, position: positionAt(stamp, index) }] : []
  })
}

/** Any date that a caller may give is later than this. */
const NO_DATE = -8.64e15

function dateOf({ createdAt }: PlacedQuote): number {
  return createdAt?.getTime() ?? NO_DATE
}

function oldestStamp({ meta: { stamp, stamps = {} } }: PlacedQuote): number {
  return Math.min(stamp, ...Object.values(stamps))
}
