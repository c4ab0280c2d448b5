// Reads the items of an import, and groups them in the order of the input: the threads of a group
// become one job.
import { setImmediate } from 'node:timers/promises'
import { EMPTY_IMPORT, type ParsedText, type Thread, type Warning } from '@sluice/contract'
import type { BodyParser } from '../body/body-parser.ts'
import { createGrowingBuffer } from '../body/read-body.ts'
import {
  lineTooLong,
  type ProblemError,
  problemBody,
  requestInvalid,
} from '../request/problem-error.ts'
import type { RequestContext } from '../request/request-context.ts'

interface ItemNumber {
  index: number
  /** The number of the item's line, from 1. Only in an import in NDJSON. */
  line?: number
}

export interface ThreadItem extends ItemNumber {
  thread: Thread
  warnings?: Warning[] | undefined
}

export interface RefusedItem {
  /** JSON, because its bytes are counted. */
  result: string
  /** The item was not taken in, or not surely: its caller may post it again. */
  mayComeAgain: boolean
}

export interface ImportGroup {
  items: (ThreadItem | RefusedItem)[]
  threads: Thread[]
  /** The bytes of the threads' lines. 0 in a group of an array, whose text was read as a whole. */
  bytes: number
  /** The approximate size of the items' results. */
  resultBytes: number
}

/** All groups of an import, in the order of the input. */
export type ImportGroups = AsyncIterable<ImportGroup> | Iterable<ImportGroup>

interface LineReader {
  /**
   * Its `chargedBytes` counts the bytes of refused lines or, if they are more, of their results.
   */
  context: Pick<RequestContext, 'requestId' | 'prefer' | 'chargedBytes'>
  parser: Pick<BodyParser, 'thread'>
  /** The bound of one line, in bytes. A longer line becomes a refused item. */
  lineBytes: number
  /**
   * Receives the size of a long line's memory before it is allocated, and may throw to refuse it.
   */
  ensure(bytes: number): void
  /** Whether no group is in progress, so that items need not wait for a full group. */
  isIdle(): boolean
}

const NEWLINE = 0x0a

const isBlank = (byte: number) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)

/**
 * Groups the lines of an import as they arrive. Keeps at most a chunk and one line in memory,
 * because it skips white space before a line, however long. If `chunks` throws, yields the items
 * before the error first.
 */
export async function* groupLines(
  chunks: AsyncIterable<Buffer>,
  { context, parser, lineBytes, ensure, isIdle }: LineReader,
): AsyncGenerator<ImportGroup> {
  const pieces = createGrowingBuffer({ expected: 0, most: lineBytes }, ensure)
  let group = emptyGroup()
  let length = 0
  let line = 1
  let index = 0
  let refusedBytes = 0

  function add(piece: Buffer): void {
    length += piece.length
    if (length > lineBytes) pieces.take()
    else pieces.add(piece)
  }

  /** Parses a line. A faulty line becomes a refused item, and the import goes on. */
  async function endLine(): Promise<void> {
    const { requestId, prefer } = context
    const item =
      length > lineBytes
        ? refuseItem({ index, line }, lineTooLong(lineBytes), requestId)
        : itemOf(requestId, { index, line }, await parser.thread(pieces.take(), prefer))
    const bytes = Math.min(length, lineBytes)
    if ('result' in item) {
      context.chargedBytes += Math.max(bytes, item.result.length)
      refusedBytes += item.result.length
    }
    addItem(group, item, bytes)
    // A line of 2 bytes becomes a result of 350, and 64 KiB of such lines would keep other callers
    // waiting.
    if (refusedBytes >= REFUSED_BYTES_PER_TURN) {
      refusedBytes = 0
      await setImmediate()
    }
    index += 1
    length = 0
  }

  function takeGroup(): ImportGroup {
    const taken = group
    group = emptyGroup()
    return taken
  }

  try {
    for await (const chunk of chunks) {
      for (let at = 0; at < chunk.length; at++) {
        const byte = chunk[at] ?? 0
        if (byte === NEWLINE) {
          if (length > 0) await endLine()
          line += 1
          if (isFull(group)) yield takeGroup()
        } else if (length > 0 || !isBlank(byte)) {
          const end = chunk.indexOf(NEWLINE, at)
          add(chunk.subarray(at, end === -1 ? undefined : end))
          at = end === -1 ? chunk.length : end - 1
        }
      }
      if (group.items.length > 0 && isIdle()) yield takeGroup()
    }
    if (length > 0) await endLine()
    if (index === 0) throw requestInvalid(EMPTY_IMPORT)
  } catch (error) {
    if (group.items.length > 0) yield group
    throw error
  }
  if (group.items.length > 0) yield group
}

/** Groups the elements of an array, which are parsed already. */
export function* groupElements(
  elements: readonly ParsedText[],
  requestId: string,
): Generator<ImportGroup> {
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
/** These bound the refused items of a group, which need memory but no job. */
const ITEMS_PER_GROUP = 1_000
const RESULT_BYTES_PER_GROUP = 256 * 1024
/** Results of refused lines that one turn of the event loop may make: about half a millisecond. */
const REFUSED_BYTES_PER_TURN = 16 * 1024
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
  } else group.resultBytes += item.result.length
}

function itemOf(
  requestId: string,
  number: ItemNumber,
  parsed: ParsedText,
): ThreadItem | RefusedItem {
  if (parsed.ok) return { ...number, thread: parsed.thread, warnings: parsed.warnings }
  return refuseItem(number, requestInvalid(parsed), requestId, parsed.externalId)
}

/** The statuses of problems after which the same item may be accepted. */
const COMES_AGAIN: ReadonlySet<number> = new Set([408, 429, 503, 504])

/**
 * Turns an item into a refused one. By default, its problem names the path `/sources`, as `POST
 * /sources` would.
 */
export function refuseItem(
  { index, line }: ItemNumber,
  problem: ProblemError,
  requestId: string,
  externalId?: string,
  instance = '/sources',
): RefusedItem {
  const body = problemBody(problem, instance, requestId)
  const { status, code } = body
  const result = JSON.stringify({ index, line, externalId, status, problem: body })
  return { result, mayComeAgain: COMES_AGAIN.has(status) || code === 'body_unreadable' }
}
