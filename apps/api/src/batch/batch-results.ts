import type { Outcome, Thread } from '@sluice/contract'
import type { ImportCounts, Receipt } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import type { RefusedItem } from './batch-item.ts'

/** What is told of one item of a batch, as JSON, and how it counts. */
export interface ItemResult {
  outcome: Outcome | 'failed'
  text: string
}

/** What is told of a batch in the end. */
export type BatchSummary = { received: number } & ImportCounts

/** Tells of an item that is stored. */
export function storedItem(index: number, tenant: string, thread: Thread, { source, outcomes }: Receipt): ItemResult {
  const { externalId } = thread.source
  const { outcome, wordCount } = source
  const count = (letter: string) => outcomes.split(letter).length - 1
  const quotes = { created: count('c'), updated: count('u'), unchanged: count('=') }
  const id = sourceIdOf(tenant, thread.source)
  return { outcome, text: JSON.stringify({ index, externalId, status: 200, outcome, id, wordCount, quotes }) }
}

/** Tells of an item that is not. */
export function refusedItem({ problem, ...item }: RefusedItem): ItemResult {
  return { outcome: 'failed', text: `${JSON.stringify(item).slice(0, -1)},"problem":${problem}}` }
}

/** Counts results as they come. */
export function createSummary(): { add(result: ItemResult): void; summary: BatchSummary } {
  const summary: BatchSummary = { received: 0, created: 0, updated: 0, unchanged: 0, failed: 0 }
  return {
    summary,
    add({ outcome }) {
      summary.received += 1
      summary[outcome] += 1
    },
  }
}
