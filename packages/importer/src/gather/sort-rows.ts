// Sorts rows that exceed memory: sorts parts in memory, and merges the sorted parts.
import type { Spool, SpoolFile } from './spool.ts'

export interface Row {
  key: string
  /** The place of the row among the rows with the same key. */
  order: string
  text: string
  /** Only in a conversation's first row: the key under which all its rows are returned. */
  topId?: string
}

/** In code units. Sorting and writing a part takes about 100 ms. */
const PART_UNITS = 8 * 1024 * 1024
const ROW_UNITS = 100

/** The size of a row in memory, in code units. */
export function unitsOf({ key, text }: Pick<Row, 'key' | 'text'>): number {
  return key.length + text.length + ROW_UNITS
}

/** Sorts by key and order, equal rows stably. Keeps a part, or a block of each part, in memory. */
export function createRowSort(createSpool: SpoolFile['createSpool']) {
  const parts: Spool<Row>[] = []
  let rows: Row[] = []
  let units = 0

  function endPart(): void {
    const part = createSpool<Row>()
    for (const row of rows.sort(compare)) part.add(row)
    parts.push(part)
    rows = []
    units = 0
  }

  return {
    add(row: Row): void {
      rows.push(row)
      units += unitsOf(row)
      if (units >= PART_UNITS) endPart()
    },
    /** Returns all rows in their order. After that, no row can be added. */
    sorted(): Generator<Row, undefined> {
      endPart()
      return merge(parts)
    },
  }
}

/** Merges sorted parts. If rows are equal, the earlier part's row comes first. */
function* merge(parts: readonly Spool<Row>[]): Generator<Row, undefined> {
  const [part] = parts
  if (parts.length < 2) {
    for (const block of part?.blocks() ?? []) yield* block
    return undefined
  }
  const middle = Math.ceil(parts.length / 2)
  const [early, late] = [merge(parts.slice(0, middle)), merge(parts.slice(middle))]
  let [one, other] = [early.next().value, late.next().value]
  while (one && other) {
    if (compare(one, other) <= 0) {
      yield one
      one = early.next().value
    } else {
      yield other
      other = late.next().value
    }
  }
  if (one) yield one
  if (other) yield other
  yield* early
  return yield* late
}

/** Compares code units, so that the order is the same on each machine. */
function compare(one: Row, other: Row): number {
  return compareTexts(one.key, other.key) || compareTexts(one.order, other.order)
}

function compareTexts(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
