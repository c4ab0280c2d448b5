// Parses the items of an import and groups them, in the order of the input: the threads of a group are one job.
import {
  EMPTY_IMPORT,
  type ParsedText,
  type Preferences,
  type Problem,
  type Thread,
  type Warning,
} from '@sluice/contract'
import type { BodyParser } from '../body/read-body.ts'
import { asProblem, lineTooLong, type ProblemError, problemBody, requestInvalid } from '../request/problem-error.ts'
import type { BodyLine } from './body-lines.ts'

/** The number of an item in its import. */
interface ItemNumber {
  index: number
  /** In an import in NDJSON, from 1. */
  line?: number
}

/** An item whose thread can be stored. */
export interface ThreadItem extends ItemNumber {
  thread: Thread
  warnings?: Warning[]
}

/** An item that was refused. Its problem is JSON, because its bytes are counted. */
export interface RefusedItem extends ItemNumber {
  externalId?: string
  status: number
  problem: string
}

/** Consecutive items of an import. */
export interface ImportGroup {
  items: (ThreadItem | RefusedItem)[]
  threads: Thread[]
  /** The size of the threads' texts. */
  bytes: number
  /** The approximate size of the items' results. */
  resultBytes: number
}

/** All groups of an import, in the order of the input. */
export type ImportGroups = AsyncIterable<ImportGroup> | Iterable<ImportGroup>

/** The dependencies of parsing an item. */
export interface ItemParser {
  requestId: string
  parser: Pick<BodyParser, 'thread'>
  prefer: Preferences
  /** The bound of one line, in bytes. */
  lineBytes: number
  /** Receives the size of each refused line, in bytes. */
  onRefused(bytes: number): void
}

/**
 * Groups the lines of an import as they arrive.
 *
 * @param isIdle whether no group is in progress, so that items need not wait for a full group.
 * @throws the error of `lines`, after a group of the items before it.
 */
export async function* groupLines(
  lines: AsyncIterable<BodyLine[]>,
  parser: ItemParser,
  isIdle: () => boolean,
): AsyncGenerator<ImportGroup> {
  let group = emptyGroup()
  let index = 0
  try {
    for await (const chunk of lines) {
      for (const { number, text } of chunk) {
        // A large text is moved to another thread, and is empty then.
        const bytes = text === 'too long' ? parser.lineBytes : text.length
        const item = await parseLine(parser, { index: index++, line: number }, text)
        if ('problem' in item) parser.onRefused(bytes)
        addItem(group, item, bytes)
        if (isFull(group)) {
          yield group
          group = emptyGroup()
        }
      }
      if (group.items.length > 0 && isIdle()) {
        yield group
        group = emptyGroup()
      }
    }
    if (index === 0) throw requestInvalid(EMPTY_IMPORT)
  } catch (error) {
    if (group.items.length > 0) yield group
    throw error
  }
  if (group.items.length > 0) yield group
}

/** Groups the elements of an array, which are parsed already. */
export function* groupElements(elements: readonly ParsedText[], requestId: string): Generator<ImportGroup> {
  for (let first = 0; first < elements.length; first += THREADS_PER_JOB) {
    const group = emptyGroup()
    for (const [at, element] of elements.slice(first, first + THREADS_PER_JOB).entries())
      addItem(group, itemOf(requestId, { index: first + at }, element), 0)
    yield group
  }
}

/** A job of this size is worth its overhead, and small enough to share a batch with other jobs. */
const THREADS_PER_JOB = 50
const BYTES_PER_JOB = 1024 * 1024
/** Refused items need no job, but memory. */
const ITEMS_PER_GROUP = 1_000
const RESULT_BYTES_PER_GROUP = 256 * 1024
/** The size of an item's result without its problem, and of one warning. */
const BYTES_PER_RESULT = 256
const BYTES_PER_WARNING = 256

function emptyGroup(): ImportGroup {
  return { items: [], threads: [], bytes: 0, resultBytes: 0 }
}

function isFull({ items, threads, bytes, resultBytes }: ImportGroup): boolean {
  if (threads.length >= THREADS_PER_JOB || bytes >= BYTES_PER_JOB) return true
  return items.length >= ITEMS_PER_GROUP || resultBytes >= RESULT_BYTES_PER_GROUP
}

function addItem(group: ImportGroup, item: ThreadItem | RefusedItem, bytes: number): void {
  group.items.push(item)
  group.resultBytes += BYTES_PER_RESULT
  if ('thread' in item) {
    group.threads.push(item.thread)
    group.bytes += bytes
    group.resultBytes += BYTES_PER_WARNING * (item.warnings?.length ?? 0)
  } else group.resultBytes += item.problem.length
}

/** Parses a line. Its faults are its own problem, and harm no other item. */
async function parseLine(
  { parser, prefer, requestId, lineBytes }: ItemParser,
  number: ItemNumber,
  text: BodyLine['text'],
): Promise<ThreadItem | RefusedItem> {
  try {
    if (text === 'too long') throw lineTooLong(lineBytes)
    return itemOf(requestId, number, await parser.thread(text, prefer))
  } catch (error) {
    const problem = asProblem(error)
    if (problem === undefined) throw error
    return refuseItem(number, itemProblem(problem, requestId))
  }
}

function itemOf(requestId: string, number: ItemNumber, parsed: ParsedText): ThreadItem | RefusedItem {
  const { warnings } = parsed
  if (parsed.ok) return { ...number, thread: parsed.thread, ...(warnings !== undefined && { warnings }) }
  return refuseItem(number, itemProblem(requestInvalid(parsed), requestId), parsed.externalId)
}

/** The problem that `POST /sources` would have answered for an item. */
export function itemProblem(problem: ProblemError, requestId: string): Problem {
  return problemBody(problem, '/sources', requestId)
}

export function refuseItem({ index, line }: ItemNumber, problem: Problem, externalId?: string): RefusedItem {
  return {
    index,
    ...(line !== undefined && { line }),
    ...(externalId !== undefined && { externalId }),
    status: problem.status,
    problem: JSON.stringify(problem),
  }
}
