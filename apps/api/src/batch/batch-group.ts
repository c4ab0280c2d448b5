import type { Thread } from '@sluice/contract'
import type { BatchItem } from './batch-item.ts'

/** Consecutive items of a batch whose threads go into one job. */
export interface BatchGroup {
  items: BatchItem[]
  threads: Thread[]
  /** About what the results of its items take until they can be handed on. */
  resultBytes: number
}

/** A job of so many threads, or of so many bytes, is large enough to be worth its way and small enough to share a batch with others. */
const THREADS_A_JOB = 50
const BYTES_A_JOB = 1024 * 1024
/** Items that are refused cost no job, but memory. */
const ITEMS_A_GROUP = 1_000
const RESULT_BYTES_A_GROUP = 256 * 1024
/** What is told of an item besides its problem. */
const BYTES_A_RESULT = 256

/** Gathers items into groups, in their order. */
export interface Grouping {
  /** True where the group is full now. */
  add(item: BatchItem, bytes: number): boolean
  /** Takes what was gathered, if anything. */
  take(): BatchGroup | undefined
}

export function createGrouping(): Grouping {
  let group = emptyGroup()
  let size = 0
  function isFull({ items, threads, resultBytes }: BatchGroup): boolean {
    if (threads.length >= THREADS_A_JOB || size >= BYTES_A_JOB) return true
    return items.length >= ITEMS_A_GROUP || resultBytes >= RESULT_BYTES_A_GROUP
  }
  return {
    add(item, bytes) {
      group.items.push(item)
      group.resultBytes += BYTES_A_RESULT
      if ('thread' in item) {
        group.threads.push(item.thread)
        size += bytes
      } else group.resultBytes += item.problem.length
      return isFull(group)
    },
    take() {
      const taken = group
      group = emptyGroup()
      size = 0
      return taken.items.length === 0 ? undefined : taken
    },
  }
}

function emptyGroup(): BatchGroup {
  return { items: [], threads: [], resultBytes: 0 }
}
