// Groups records by their keys in a temporary file, so that they may exceed memory.
import { setImmediate as otherWork } from 'node:timers/promises'
import { createConversations } from './conversations.ts'
import { createRowSort, type Row, unitsOf } from './sort-rows.ts'
import { openSpoolFile } from './spool.ts'

/**
 * A record. It is returned together with the records that have the same key. Its texts are
 * well-formed, and `text` is one line.
 */
export interface SortRecord extends Omit<Row, 'topId'> {
  /**
   * Only for a mail: the ids before it. `key` is its Message-ID, and is replaced by the topmost
   * Message-ID of its conversation.
   */
  references?: readonly string[]
}

export type SortedRecord = Pick<SortRecord, 'key' | 'text'>

export type ExternalSort = ReturnType<typeof createExternalSort>

/** The size of a list, in code units. After each, the event loop does other work. */
export const LIST_UNITS = 256 * 1024

/** Creates a sort. It has a temporary file in the folder until it is disposed of. */
export function createExternalSort({ folder, signal }: { folder: string; signal: AbortSignal }) {
  const { createSpool, close } = openSpoolFile(folder)
  const rows = createRowSort(createSpool)
  const pause = async () => {
    await otherWork()
    signal.throwIfAborted()
  }
  const conversations = createConversations(createSpool, pause)
  return {
    add({ references, ...row }: SortRecord): void {
      signal.throwIfAborted()
      if (references === undefined) rows.add(row)
      else conversations.add(row, references)
    },
    /**
     * Ends adding. Yields the records of each key together, by ascending `order`. Records with
     * equal `order` keep the order in which they were added.
     */
    async *sorted(): AsyncGenerator<readonly SortedRecord[]> {
      for await (const list of conversations.rows()) for (const row of list) rows.add(row)
      let list: SortedRecord[] = []
      let units = 0
      let [rowKey, key] = ['', '']
      for (const row of rows.sorted()) {
        if (row.key !== rowKey) key = row.topId ?? row.key
        rowKey = row.key
        const record = { key, text: row.text }
        list.push(record)
        units += unitsOf(record)
        if (units < LIST_UNITS) continue
        yield list
        await pause()
        list = []
        units = 0
      }
      if (list.length > 0) yield list
    },
    [Symbol.dispose]: close,
  }
}
