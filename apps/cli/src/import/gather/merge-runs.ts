// Merges sorted lists of records into one.
import { compareRecords, type SortRecord } from './sort-runs.ts'

const RECORDS_PER_LIST = 256

/** Yields the records of all runs in their order. Of equal records, those of an earlier run come first. */
export async function* mergeRuns(
  runs: readonly AsyncIterator<readonly SortRecord[]>[],
): AsyncGenerator<readonly SortRecord[]> {
  const heap: Cursor[] = []
  for (const [index, lists] of runs.entries()) {
    const cursor: Cursor = { lists, index, list: [], at: 0 }
    if (await refill(cursor)) insert(heap, cursor)
  }
  let merged: SortRecord[] = []
  for (let first = heap[0]; first !== undefined; first = heap[0]) {
    merged.push(current(first))
    first.at += 1
    if (first.at === first.list.length && !(await refill(first))) removeFirst(heap)
    else sink(heap, 0)
    if (merged.length < RECORDS_PER_LIST) continue
    yield merged
    merged = []
  }
  if (merged.length > 0) yield merged
}

/** The next record of a run. */
interface Cursor {
  lists: AsyncIterator<readonly SortRecord[]>
  index: number
  list: readonly SortRecord[]
  at: number
}

async function refill(cursor: Cursor): Promise<boolean> {
  const next = await cursor.lists.next()
  if (next.done) return false
  cursor.list = next.value
  cursor.at = 0
  return true
}

function current({ list, at }: Cursor): SortRecord {
  const record = list[at]
  if (record === undefined) throw new Error('A cursor of the merge is at no record.')
  return record
}

function precedes(a: Cursor, b: Cursor): boolean {
  return (compareRecords(current(a), current(b)) || a.index - b.index) < 0
}

// A binary heap: the children of the cursor at `at` are at 2·at + 1 and 2·at + 2, and neither precedes it.

function insert(heap: Cursor[], cursor: Cursor): void {
  heap.push(cursor)
  for (let at = heap.length - 1; at > 0; ) {
    const parent = (at - 1) >> 1
    if (!swapIfMisplaced(heap, parent, at)) return
    at = parent
  }
}

function removeFirst(heap: Cursor[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  heap[0] = last
  sink(heap, 0)
}

function sink(heap: Cursor[], from: number): void {
  for (let at = from; ; ) {
    const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]]
    if (left === undefined) return
    const child = right !== undefined && precedes(right, left) ? 2 * at + 2 : 2 * at + 1
    if (!swapIfMisplaced(heap, at, child)) return
    at = child
  }
}

function swapIfMisplaced(heap: Cursor[], parent: number, child: number): boolean {
  const [above, below] = [heap[parent], heap[child]]
  if (above === undefined || below === undefined || !precedes(below, above)) return false
  heap[parent] = below
  heap[child] = above
  return true
}
