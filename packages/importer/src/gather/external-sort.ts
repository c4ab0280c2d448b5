// Groups records by their keys beyond the size of memory: SQLite sorts them in a temporary file, in its own thread.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { UserError } from '@sluice/terminal'

/** A record, which belongs to those of the same key. Its texts are well-formed. */
export interface SortRecord {
  key: string
  /** The place among the records of the key. */
  order: string
  text: string
  /** The record of a mail: `key` is its Message-ID, and becomes the topmost one of its conversation. */
  references?: readonly string[]
}

export type SortedRecord = Pick<SortRecord, 'key' | 'text'>

/** Records to insert, or a request for the next sorted ones. The answer is a list, which is empty at the end. */
export type SortRequest = readonly SortRecord[] | 'next'

export type ExternalSort = ReturnType<typeof createExternalSort>

/** A list between the two threads has about this many code units, or one record: copying a list blocks both threads. */
export const LIST_UNITS = 256 * 1024
const RECORD_UNITS = 100

/**
 * Memory: SQLite's cache of 16 MiB, and two batches. The temporary file has about 1.25 times the size of the records,
 * and 1.8 times if they are mails of less than a kilobyte. It lies in the folder and has no name, so it is gone with this process, however the process ends.
 */
export function createExternalSort({ folder, signal }: { folder: string; signal: AbortSignal }) {
  const worker = new Worker(new URL('./sort-thread.ts', import.meta.url), { workerData: { folder } })
  let failure: unknown
  // `once` below rejects with an error that comes while it waits, and would miss an earlier one.
  worker.on('error', (error) => {
    failure = error
  })
  let batch: SortRecord[] = []
  let units = 0
  /** The thread inserts one batch while the next one is filled. */
  let inserting: Promise<unknown> = Promise.resolve()

  async function ask(request: SortRequest): Promise<readonly SortedRecord[]> {
    signal.throwIfAborted()
    try {
      if (failure !== undefined) throw failure
      worker.postMessage(request)
      const [answer] = await once(worker, 'message', { signal })
      return answer
    } catch (error) {
      signal.throwIfAborted()
      throw problemOf(error, folder)
    }
  }

  async function insert(): Promise<void> {
    const records = batch
    batch = []
    units = 0
    await inserting
    inserting = ask(records)
    inserting.catch(() => {})
  }

  return {
    /** Returns a promise if the caller has to wait before it adds more. */
    add(record: SortRecord): Promise<void> | undefined {
      batch.push(record)
      units += unitsOf(record)
      return units > LIST_UNITS ? insert() : undefined
    },
    /** Ends adding. Yields the records of each key in ascending order, equal ones as they were added. */
    async *sorted(): AsyncGenerator<readonly SortedRecord[]> {
      await insert()
      await inserting
      for (let next = ask('next'); ; ) {
        const list = await next
        if (list.length === 0) return
        // The thread reads the next list meanwhile.
        next = ask('next')
        next.catch(() => {})
        yield list
      }
    },
    async [Symbol.asyncDispose]() {
      await worker.terminate()
    },
  }
}

/** The size of a record as `LIST_UNITS` counts it. */
export function unitsOf({ key, text, references = [] }: SortedRecord & Pick<SortRecord, 'references'>): number {
  return key.length + text.length + references.join().length + RECORD_UNITS
}

function problemOf(error: unknown, folder: string): unknown {
  const { code, message } = Object(error)
  if (code !== 'ERR_SQLITE_ERROR') return error
  const advice = 'Free some space, or name another folder with --temp-dir, and run the same command again.'
  return new UserError(`The temporary file in ${folder} cannot be written: ${message}. ${advice}`, {
    cause: error,
  })
}
