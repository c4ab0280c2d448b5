import type { Outcome, Problem, Thread } from '@sluice/contract'
import type { BatchCounts, Receipt } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'

/** What is told of one item of a batch. */
export type ItemResult =
  | {
      index: number
      externalId: string
      status: 200
      outcome: Outcome
      id: string
      wordCount: number
      quotes: Record<Outcome, number>
    }
  | { index: number; externalId?: string; status: number; problem: Problem }

/** What is told of a batch in the end. */
export type BatchSummary = { received: number } & BatchCounts

/** Tells of an item that is stored. */
export function storedItem(index: number, tenant: string, thread: Thread, { source, outcomes }: Receipt): ItemResult {
  const { externalId } = thread.source
  const count = (letter: string) => outcomes.split(letter).length - 1
  return {
    index,
    externalId,
    status: 200,
    outcome: source.outcome,
    id: sourceIdOf(tenant, thread.source),
    wordCount: source.wordCount,
    quotes: { created: count('c'), updated: count('u'), unchanged: count('=') },
  }
}

/** Tells of an item that is not. */
export function refusedItem(index: number, problem: Problem, externalId?: string): ItemResult {
  const { status } = problem
  return externalId === undefined ? { index, status, problem } : { index, externalId, status, problem }
}

/** Counts results as they come. */
export function createSummary(): { add(result: ItemResult): void; summary: BatchSummary } {
  const summary: BatchSummary = { received: 0, created: 0, updated: 0, unchanged: 0, failed: 0 }
  return {
    summary,
    add(result) {
      summary.received += 1
      summary['outcome' in result ? result.outcome : 'failed'] += 1
    },
  }
}
