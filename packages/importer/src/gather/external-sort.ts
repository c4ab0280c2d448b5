// Groups records by their keys beyond the size of memory, in a temporary file.
import { setImmediate as otherWork } from 'node:timers/promises'
import { createConversations } from './conversations.ts'
import { createRowSort, type Row, unitsOf } from './sort-rows.ts'
import { openSpoolFile } from './spool.ts'

/**
 * A record, which is returned together with those of the same key. Its texts are well-formed, and
 * `text` is one line.
 */
export interface SortRecord extends Omit<Row, 'topId'> {
  /**
   * Only of a mail: the ids before it. `key` is its Message-ID, and becomes the topmost one of its
   * conversation.
   */
  references?: readonly string[]
}

export type SortedRecord = Pick<SortRecord, 'key' | 'text'>

export type ExternalSort = ReturnType<typeof createExternalSort>

/**
 * A list has about this many code units, or one record: the event loop does other work after each
 * list.
 */
export const LIST_UNITS = 256 * 1024

/** Creates a sort whose temporary file lies in the folder, until the sort is disposed of. */
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
     * Ends adding. Yields the records of each key together, in ascending `order`. Records of equal
     * `order` stay as they were added.
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
