// Sorts more records than memory holds: sorted runs in a temporary file, then a merge of them.
import { mergeRuns } from './merge-runs.ts'
import { compareRecords, openRunFile, type RecordLists, type Run, type RunFile, type SortRecord } from './sort-runs.ts'

export interface ExternalSort extends AsyncDisposable {
  /** Returns a promise if the record has to wait for the disk. */
  add(record: SortRecord): Promise<void> | undefined
  /** All records, in lists; equal ones as they came. Nothing can be added any more. */
  sorted(): AsyncGenerator<readonly SortRecord[]>
}

interface SortOptions {
  /** Where the temporary file lies. */
  folder: string
  /** Ends the sort. */
  signal?: AbortSignal
  /** How many code units of records are held in memory. One takes one byte in most texts, at most two. */
  memoryUnits?: number
  /** How many runs are merged at once. */
  fanIn?: number
}

const MEMORY_UNITS = 16 * 1024 * 1024
const RECORD_UNITS = 100
const FAN_IN = 128
/** All runs that are merged read slices of this size in total. */
const MERGE_BYTES = 16 * 1024 * 1024

/**
 * Sorts on disk. Memory holds at most `memoryUnits` of records. The temporary file takes as much space as the records, and as much again for each
 * further merge, which above 128 runs is one.
 */
export function createExternalSort({
  folder,
  signal,
  memoryUnits = MEMORY_UNITS,
  fanIn = FAN_IN,
}: SortOptions): ExternalSort {
  let buffered: SortRecord[] = []
  let units = 0
  let runs: Run[] = []
  let file: RunFile | undefined

  async function writeRun(records: RecordLists): Promise<Run> {
    file ??= await openRunFile(folder, signal)
    return file.write(records)
  }

  async function spill(): Promise<void> {
    const records = buffered.sort(compareRecords)
    buffered = []
    units = 0
    runs.push(await writeRun([records]))
  }

  function merge(some: readonly Run[]): AsyncGenerator<readonly SortRecord[]> {
    const sliceBytes = Math.ceil(MERGE_BYTES / some.length)
    return mergeRuns(some.flatMap((run) => file?.read(run, sliceBytes) ?? []))
  }

  /** Merges neighbours, so that equal records stay in the order in which they came. */
  async function reduceRuns(): Promise<void> {
    while (runs.length > fanIn) {
      const merged: Run[] = []
      for (let at = 0; at < runs.length; at += fanIn) merged.push(await writeRun(merge(runs.slice(at, at + fanIn))))
      runs = merged
    }
  }

  return {
    add(record) {
      buffered.push(record)
      units += record.key.length + record.order.length + record.text.length + RECORD_UNITS
      return units > memoryUnits ? spill() : undefined
    },
    async *sorted() {
      if (runs.length === 0) {
        const records = buffered.sort(compareRecords)
        buffered = []
        if (records.length > 0) yield records
        return
      }
      if (buffered.length > 0) await spill()
      await reduceRuns()
      yield* merge(runs)
    },
    async [Symbol.asyncDispose]() {
      buffered = []
      await file?.close()
    },
  }
}
