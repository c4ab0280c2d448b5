import type { Thread } from '@sluice/contract'
import type { BatchItem } from './batch-item.ts'

/** Consecutive items of a batch whose threads go into one job. */
export interface BatchGroup {
  items: BatchItem[]
  threads: Thread[]
}

/** A job of so many threads, or of so many bytes, is large enough to be worth its way and small enough to share a batch with others. */
const THREADS_A_JOB = 50
const BYTES_A_JOB = 1024 * 1024
/** Items that are refused cost no job, but memory. */
const ITEMS_A_GROUP = 1_000

/** Gathers items into groups, in their order. */
export interface Grouping {
  /** True where the group is full now. */
  add(item: BatchItem, bytes: number): boolean
  /** Takes what was gathered, if anything. */
  take(): BatchGroup | undefined
}

export function createGrouping(): Grouping {
  let group: BatchGroup = { items: [], threads: [] }
  let size = 0
  return {
    add(item, bytes) {
      group.items.push(item)
      if ('thread' in item) {
        group.threads.push(item.thread)
        size += bytes
      }
      return group.threads.length >= THREADS_A_JOB || size >= BYTES_A_JOB || group.items.length >= ITEMS_A_GROUP
    },
    take() {
      const taken = group
      group = { items: [], threads: [] }
      size = 0
      return taken.items.length === 0 ? undefined : taken
    },
  }
}
