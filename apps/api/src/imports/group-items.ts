// Reads the items of an import, and groups them in the order of the input. The threads of a group
// become one job.
import { setImmediate } from 'node:timers/promises'
import { EMPTY_IMPORT, type ParsedText, type Thread, type Warning } from '@sluice/contract'
import type { Deletion } from '@sluice/queue'
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
  /** The number of the item's line, from 1. Only an import in NDJSON has it. */
  line?: number
}

export interface ThreadItem extends ItemNumber {
  thread: Thread | Deletion
  warnings?: Warning[] | undefined
}

export interface RefusedItem {
  /** The result as JSON, because its bytes are counted. */
  result: string
  /**
   * Whether the caller may post the item again, because it was not accepted, or nobody knows
   * whether it was.
   */
  mayComeAgain: boolean
}

export interface ImportGroup {
  items: (ThreadItem | RefusedItem)[]
  threads: (Thread | Deletion)[]
  /**
   * The bytes of the threads' lines. In a group of an array, 0, because the array is read as a
   * whole.
   */
  bytes: number
  /** The approximate size of the items' results. */
  resultBytes: number
}

/** An item that was parsed: a thread, or a source to delete. */
export type ParsedItem =
  | { ok: true; thread: Thread | Deletion; warnings?: Warning[] }
  | Extract<ParsedText, { ok: false }>

export type ParseLine = (
  text: Buffer,
  options: { strict: boolean },
) => ParsedItem | Promise<ParsedItem>

/** All groups of an import, in the order of the input. */
export type ImportGroups = AsyncIterable<ImportGroup> | Iterable<ImportGroup>

interface LineReader {
  /**
   * `chargedBytes` gets the bytes of refused lines or, if that is more, the bytes of their results.
   */
  context: Pick<RequestContext, 'requestId' | 'prefer' | 'chargedBytes'>
  parseLine: ParseLine
  /** The bound of a line, in bytes. A longer line becomes a refused item. */
  lineBytes: number
  /**
   * Called with the size of a long line's memory before it is allocated. May throw to refuse it.
   */
  ensure(bytes: number): void
  /**
   * Returns whether no group is in progress. Then items need not wait until their group is full.
   */
  isIdle(): boolean
}

const NEWLINE = 0x0a

const isBlank = (byte: number) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)

/**
 * Groups the lines of an import as they arrive. Keeps at most one chunk and one line in memory,
 * because it skips white space in front of a line. If `chunks` throws, yields the items before the
 * error first.
 */
export async function* groupLines(
  chunks: AsyncIterable<Buffer>,
  { context, parseLine, lineBytes, ensure, isIdle }: LineReader,
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

  /** Parses a line. An invalid line becomes a refused item, and the import continues. */
  async function endLine(): Promise<void> {
    const { requestId, prefer } = context
    const item =
      length > lineBytes
        ? refuseItem({ index, line }, lineTooLong(lineBytes), requestId)
        : itemOf(requestId, { index, line }, await parseLine(pieces.take(), prefer))
    const bytes = Math.min(length, lineBytes)
    if ('result' in item) {
      context.chargedBytes += Math.max(bytes, item.result.length)
      refusedBytes += item.result.length
    }
    addItem(group, item, bytes)
    // A line of 2 bytes has a result of 350 bytes, and 64 KiB of such lines would make other
    // callers wait.
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

/** Groups the elements of an array, which are already parsed. */
export function* groupElements(
  elements: readonly ParsedItem[],
  requestId: string,
): Generator<ImportGroup> {
  for (let first = 0; first < elements.length; first += THREADS_PER_JOB) {
    const group = emptyGroup()
    for (const [at, element] of elements.slice(first, first + THREADS_PER_JOB).entries())
      addItem(group, itemOf(requestId, { index: first + at }, element), 0)
    yield group
  }
}

/**
 * A job of this size is large enough to be worth its overhead, and small enough to share a batch
 * with other jobs.
 */
const THREADS_PER_JOB = 50
const BYTES_PER_JOB = 1024 * 1024
/** Bounds of a group's refused items: they make no job, but need memory until they are answered. */
const ITEMS_PER_GROUP = 1_000
const RESULT_BYTES_PER_GROUP = 256 * 1024
/**
 * The results of refused lines that are made in one turn of the event loop: about half a
 * millisecond of work.
 */
const REFUSED_BYTES_PER_TURN = 16 * 1024
/** The size of an item's result without its problem, and the size of a warning. */
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
  parsed: ParsedItem,
): ThreadItem | RefusedItem {
  if (parsed.ok) return { ...number, thread: parsed.thread, warnings: parsed.warnings }
  return refuseItem(number, requestInvalid(parsed), requestId, parsed.externalId)
}

/** If a problem has one of these statuses, the same item may be accepted later. */
const COMES_AGAIN: ReadonlySet<number> = new Set([408, 429, 503, 504])

/**
 * Turns an item into a refused item. By default, its problem names the path `/sources`, like a
 * problem of `POST /sources`.
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
