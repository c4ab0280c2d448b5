// The items of an import: parses them, groups them into jobs in their order, and makes their results, as JSON.
import {
  EMPTY_IMPORT,
  type ImportSummary,
  type Outcome,
  type ParsedText,
  type Preferences,
  type Problem,
  type StoredItem,
  type Thread,
  type Warning,
} from '@sluice/contract'
import type { Receipt } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import type { BodyParser } from '../body/overload.ts'
import { asProblem, lineTooLong, type ProblemError, problemBody, requestInvalid } from '../request/problem-error.ts'
import type { BodyLine, Lines } from './body-lines.ts'

/** The place of an item in its import. */
type ItemPlace = Pick<ThreadItem, 'index' | 'line'>

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

/** Consecutive items of an import. Their threads go into one job. */
export interface ImportGroup {
  items: ImportItem[]
  threads: Thread[]
  /** The size of the threads' texts. */
  bytes: number
  /** The approximate size of the items' results until they can be handed on. */
  resultBytes: number
}

/** Accepts one group. Resolves when the next may come, which bounds memory. */
export type Submit = (group: ImportGroup) => Promise<void>

/** Submits all groups of an import. */
export type RunImport = (submit: Submit, isIdle: () => boolean) => Promise<void>

/** The dependencies of parsing an item. */
export interface ItemParser {
  requestId: string
  parser: Pick<BodyParser, 'thread'>
  prefer: Preferences
  /** Size of one line, in bytes. */
  lineBytes: number
  /** Receives the size of each refused line, in bytes. */
  onRefused(bytes: number): void
}

/**
 * Parses the lines of an import as they arrive and submits them in groups.
 *
 * @param isIdle whether no group is in progress, so that items need not wait for a full group.
 * @throws what reading the lines throws, after the items before it were submitted.
 */
export async function submitLines(
  lines: AsyncIterable<Lines>,
  parser: ItemParser,
  submit: Submit,
  isIdle: () => boolean,
): Promise<void> {
  const grouping = createGrouping(submit)
  let index = 0
  try {
    for await (const chunk of lines) {
      for (const line of chunk) {
        const bytes = line.text === 'too long' ? parser.lineBytes : line.text.length
        const item = await parseLine(parser, { index: index++, line: line.number }, line.text)
        if ('problem' in item) parser.onRefused(bytes)
        await grouping.add(item, bytes)
      }
      if (isIdle()) await grouping.flush()
    }
    if (index === 0) throw requestInvalid(EMPTY_IMPORT)
  } finally {
    await grouping.flush()
  }
}

/** Submits the elements of an array, which are parsed already, in groups. */
export async function submitArray(
  elements: readonly ParsedText[],
  parser: Pick<ItemParser, 'requestId'>,
  submit: Submit,
): Promise<void> {
  const grouping = createGrouping(submit)
  for (const [index, element] of elements.entries()) await grouping.add(itemOf(parser, { index }, element), 0)
  await grouping.flush()
}

/**
 * Runs an import until its end, or until the problem that ended it early.
 *
 * @throws {CallerGoneError}
 */
export async function problemOf(running: Promise<void>): Promise<ProblemError | undefined> {
  try {
    await running
    return undefined
  } catch (error) {
    const problem = asProblem(error)
    if (problem === undefined) throw error
    return problem
  }
}

/** A job of this size is worth its overhead, and small enough to share a batch with other jobs. */
const THREADS_PER_JOB = 50
const BYTES_PER_JOB = 1024 * 1024
/** Refused items need no job, but memory. */
const ITEMS_PER_GROUP = 1_000
const RESULT_BYTES_PER_GROUP = 256 * 1024
/** The size of an item's result without its problem. */
const BYTES_PER_RESULT = 256
const BYTES_PER_WARNING = 256

function createGrouping(submit: Submit) {
  let group = emptyGroup()
  function isFull({ items, threads, bytes, resultBytes }: ImportGroup): boolean {
    if (threads.length >= THREADS_PER_JOB || bytes >= BYTES_PER_JOB) return true
    return items.length >= ITEMS_PER_GROUP || resultBytes >= RESULT_BYTES_PER_GROUP
  }
  async function flush(): Promise<void> {
    if (group.items.length === 0) return
    const full = group
    group = emptyGroup()
    await submit(full)
  }
  return {
    flush,
    async add(item: ImportItem, itemBytes: number): Promise<void> {
      group.items.push(item)
      group.resultBytes += BYTES_PER_RESULT
      if ('thread' in item) {
        group.threads.push(item.thread)
        group.bytes += itemBytes
        group.resultBytes += BYTES_PER_WARNING * (item.warnings?.length ?? 0)
      } else group.resultBytes += item.problem.length
      if (isFull(group)) await flush()
    },
  }
}

function emptyGroup(): ImportGroup {
  return { items: [], threads: [], bytes: 0, resultBytes: 0 }
}

/** Parses a line. Its faults are its own problem, and harm no other item. */
async function parseLine(parser: ItemParser, place: ItemPlace, text: BodyLine['text']): Promise<ImportItem> {
  if (text === 'too long') return refuseItem(place, itemProblem(lineTooLong(parser.lineBytes), parser.requestId))
  try {
    return itemOf(parser, place, await parser.parser.thread(text, parser.prefer))
  } catch (error) {
    const problem = asProblem(error)
    if (problem === undefined) throw error
    return refuseItem(place, itemProblem(problem, parser.requestId))
  }
}

function itemOf({ requestId }: Pick<ItemParser, 'requestId'>, place: ItemPlace, parsed: ParsedText): ImportItem {
  const { warnings } = parsed
  if (parsed.ok) return { ...place, thread: parsed.thread, ...(warnings !== undefined && { warnings }) }
  return refuseItem(place, itemProblem(requestInvalid(parsed), requestId), parsed.externalId)
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
