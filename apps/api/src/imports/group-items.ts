// Parses the items of an import and groups them into jobs, in their order.
import type { ParseThread, Preferences, Thread } from '@sluice/contract'
import { asProblem, lineTooLong, ProblemError, requestInvalid } from '../problems.ts'
import { parseJson } from '../read-body.ts'
import type { BodyLine, Lines } from './body-lines.ts'
import { type ImportItem, itemProblem, refuseItem } from './import-items.ts'

/** Consecutive items of an import. Their threads go into one job. */
export interface ImportGroup {
  items: ImportItem[]
  threads: Thread[]
  /** The approximate size of the items' results until they can be handed on. */
  resultBytes: number
}

/** Accepts one group. Resolves when the next may come, which bounds memory. */
export type Submit = (group: ImportGroup) => Promise<void>

/** Submits all groups of an import. */
export type RunImport = (submit: Submit, isIdle: () => boolean) => Promise<void>

/** What parsing an item needs. */
export interface ItemParser {
  requestId: string
  parseThread: ParseThread
  prefer: Preferences
  /** Size of one line, in bytes. */
  lineBytes: number
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
        await grouping.add(
          parseItem(parser, index++, () => parseLine(line, parser.lineBytes)),
          line.length,
        )
      }
      if (isIdle()) await grouping.flush()
    }
  } finally {
    await grouping.flush()
  }
}

/** Parses the elements of an array and submits them in groups. */
export async function submitArray(elements: readonly unknown[], parser: ItemParser, submit: Submit): Promise<void> {
  const grouping = createGrouping(submit)
  for (const [index, element] of elements.entries()) {
    await grouping.add(
      parseItem(parser, index, () => element),
      0,
    )
  }
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

function createGrouping(submit: Submit) {
  let group: ImportGroup = { items: [], threads: [], resultBytes: 0 }
  let bytes = 0
  function isFull({ items, threads, resultBytes }: ImportGroup): boolean {
    if (threads.length >= THREADS_PER_JOB || bytes >= BYTES_PER_JOB) return true
    return items.length >= ITEMS_PER_GROUP || resultBytes >= RESULT_BYTES_PER_GROUP
  }
  async function flush(): Promise<void> {
    if (group.items.length === 0) return
    const full = group
    group = { items: [], threads: [], resultBytes: 0 }
    bytes = 0
    await submit(full)
  }
  return {
    flush,
    async add(item: ImportItem, itemBytes: number): Promise<void> {
      group.items.push(item)
      group.resultBytes += BYTES_PER_RESULT
      if ('thread' in item) {
        group.threads.push(item.thread)
        bytes += itemBytes
      } else group.resultBytes += item.problem.length
      if (isFull(group)) await flush()
    },
  }
}

/** Parses an item. Its faults are its own problem, and harm no other item. */
function parseItem({ requestId, parseThread, prefer }: ItemParser, index: number, read: () => unknown): ImportItem {
  let body: unknown
  try {
    body = read()
    const parsed = parseThread(body, prefer)
    if (parsed.ok) return { index, thread: parsed.thread }
    throw requestInvalid(parsed)
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    return refuseItem(index, itemProblem(error, requestId), externalIdOf(body))
  }
}

function parseLine(line: BodyLine, lineBytes: number): unknown {
  if (line === 'too long') throw lineTooLong(lineBytes)
  return parseJson(line)
}

/** Enough to find the item by. A longer text is no externalId. */
const EXTERNAL_ID_LENGTH = 512

function externalIdOf(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('externalId' in body)) return undefined
  const { externalId } = body
  return typeof externalId === 'string' && externalId.length <= EXTERNAL_ID_LENGTH ? externalId : undefined
}
