// The results of an import's items, as JSON, and their summary.
import type { ImportSummary, Outcome, StoredItem } from '@sluice/contract'
import type { Receipt } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import type { ProblemError } from '../request/problem-error.ts'
import { itemProblem, type RefusedItem, refuseItem, type ThreadItem } from './group-items.ts'

/** The result of one item, as JSON, and how it counts. */
export interface ItemResult {
  outcome: Outcome | 'failed'
  json: string
}

export function storedResult(
  { index, thread, warnings }: ThreadItem,
  tenant: string,
  { source, outcomes }: Receipt,
): ItemResult {
  const { externalId } = thread.source
  const { outcome, wordCount } = source
  const count = (letter: string) => outcomes.split(letter).length - 1
  const quotes = { created: count('c'), updated: count('u'), unchanged: count('=') }
  const id = sourceIdOf(tenant, thread.source)
  const stored: StoredItem = { index, externalId, status: 200, outcome, id, wordCount, quotes }
  return { outcome, json: JSON.stringify(warnings === undefined ? stored : { ...stored, warnings }) }
}

export function refusedResult({ problem, ...fields }: RefusedItem): ItemResult {
  return { outcome: 'failed', json: `${JSON.stringify(fields).slice(0, -1)},"problem":${problem}}` }
}

export function failedResult(
  { thread, ...item }: ThreadItem,
  problem: ProblemError,
  { requestId }: { requestId: string },
): ItemResult {
  return refusedResult(refuseItem(item, itemProblem(problem, requestId), thread.source.externalId))
}

export function emptySummary(): ImportSummary {
  return { received: 0, created: 0, updated: 0, unchanged: 0, failed: 0 }
}

export function addResults(summary: ImportSummary, results: readonly ItemResult[]): void {
  summary.received += results.length
  for (const { outcome } of results) summary[outcome] += 1
}
