// Counts for the summary what was read from each input that the user named.
import type { InputCount } from './account/ledger.ts'
import type { Format } from './formats/format.ts'
import { countsAsThread, type ImportEvent } from './gather/gather-threads.ts'
import type { Detected, FormattedFiles } from './input/detect-format.ts'

export type InputCounts = ReturnType<typeof createInputCounts>

export function createInputCounts({ unread }: Detected) {
  const inputs: InputCount[] = []
  return {
    inputs,
    /** Files that no format recognises. */
    unread,
    /** Counts a group of files. A thread counts for the file that has its first record. */
    of({ format: { name: format, read }, inputOf }: FormattedFiles) {
      const counts = new Map<string, InputCount>()
      // The records of a file come in succession.
      let last: { path: string; count: InputCount } | undefined
      const countOf = (path: string): InputCount => {
        if (last?.path === path) return last.count
        const name = inputOf(path)
        const count = counts.get(name) ?? { name, format, records: 0, threads: 0 }
        if (!counts.has(name)) inputs.push(count)
        counts.set(name, count)
        last = { path, count }
        return count
      }
      const countedRead: Format['read'] = async function* (files, options) {
        for (const { path } of files) countOf(path)
        for await (const list of read(files, options)) {
          for (const { kind, place } of list)
            if (kind === 'piece' || kind === 'rejected') countOf(place.path).records += 1
          yield list
        }
      }
      return {
        read: countedRead,
        addThreads(events: readonly ImportEvent[]) {
          for (const event of events)
            if (event.kind === 'piece' && countsAsThread(event))
              countOf(event.place.path).threads += 1
        },
      }
    },
  }
}
