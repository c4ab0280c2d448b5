// The items of an import and their results, as JSON.
import type { ImportSummary, Outcome, Problem, StoredItem, Thread, Warning } from '@sluice/contract'
import type { Receipt } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import { type ProblemError, problemBody } from '../problems.ts'

/** The place of an item in its import. */
export type ItemPlace = Pick<ThreadItem, 'index' | 'line'>

/** An item that was refused. Its problem is kept as JSON, because its bytes are counted. */
export interface RefusedItem {
  index: number
  /** In the body of an import in NDJSON, from 1. */
  line?: number
  externalId?: string
  status: number
  problem: string
}

/** An item whose thread can be stored. */
export interface ThreadItem {
  index: number
  line?: number
  thread: Thread
  warnings?: Warning[]
}

/** One item of an import. */
export type ImportItem = ThreadItem | RefusedItem

/** The result of one item, as JSON, and how it counts. */
export interface ItemResult {
  outcome: Outcome | 'failed'
  json: string
}

/** The problem that `POST /sources` would have answered for an item. */
export function itemProblem(problem: ProblemError, requestId: string): Problem {
  return problemBody(problem, '/sources', requestId)
}

export function refuseItem(place: ItemPlace, problem: Problem, externalId?: string): RefusedItem {
  const fields = { status: problem.status, problem: JSON.stringify(problem) }
  return externalId === undefined ? { ...place, ...fields } : { ...place, externalId, ...fields }
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

/** Counts results as they arrive. */
export function createSummary(): { add(results: readonly ItemResult[]): void; summary: ImportSummary } {
  const summary: ImportSummary = { received: 0, created: 0, updated: 0, unchanged: 0, failed: 0 }
  return {
    summary,
    add(results) {
      summary.received += results.length
      for (const { outcome } of results) summary[outcome] += 1
    },
  }
}
