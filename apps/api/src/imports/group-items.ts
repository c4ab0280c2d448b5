// Reads the items of an import, and groups them in the order of the input: the threads of a group are one job.
import type { Readable } from 'node:stream'
import {
  EMPTY_IMPORT,
  type ParsedText,
  type Preferences,
  type Problem,
  type Thread,
  type Warning,
} from '@sluice/contract'
import { createGrowingBuffer } from '../body/arriving-body.ts'
import { bodyChunks, type Coding } from '../body/body-chunks.ts'
import type { BodyParser } from '../body/read-body.ts'
import { asProblem, lineTooLong, type ProblemError, problemBody, requestInvalid } from '../request/problem-error.ts'

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

/** One line of a body. Lines count from 1, blank lines included. A line that is too long is skipped. */
interface BodyLine {
  number: number
  text: Buffer | 'too long'
}

/** The bounds of a body, in bytes. */
interface LineBounds {
  /** The whole body, as sent and inflated. */
  importBytes: number
  lineBytes: number
  /** Aborts when nobody waits for the rest. Its reason is the error to throw. */
  stop: AbortSignal
  /** Receives the memory of a long line before it is allocated, and may throw to refuse it. */
  ensure(bytes: number): void
}

const NEWLINE = 0x0a

/**
 * Yields the lines that each chunk of a body completes. Keeps at most a chunk and one line in memory. Skips white space
 * before a line, and lines of white space, of any length.
 *
 * @throws {ProblemError} if the body is too large or does not inflate, or the grace time is over.
 * @throws {CallerGoneError}
 */
export async function* bodyLines(
  body: Readable,
  coding: Coding,
  { importBytes, lineBytes, stop, ensure }: LineBounds,
): AsyncGenerator<BodyLine[]> {
  const pieces = createGrowingBuffer({ expected: 0, most: lineBytes }, ensure)
  let length = 0
  let number = 1

  function add(piece: Buffer): void {
    length += piece.length
    if (length > lineBytes) pieces.take()
    else if (piece.length > 0) pieces.add(piece)
  }

  function complete(): BodyLine[] {
    const text = length > lineBytes ? 'too long' : pieces.take()
    const lines = length === 0 ? [] : [{ number, text } as const]
    length = 0
    number += 1
    return lines
  }

  for await (const chunk of bodyChunks(body, coding, { bytes: importBytes, limit: 'importBytes', stop })) {
    const lines: BodyLine[] = []
    for (let start = 0; start < chunk.length; ) {
      if (length === 0) {
        const blanks = blanksAt(chunk, start)
        start += blanks.length
        number += blanks.newlines
      }
      const end = chunk.indexOf(NEWLINE, start)
      add(chunk.subarray(start, end === -1 ? undefined : end))
      if (end === -1) break
      lines.push(...complete())
      start = end + 1
    }
    yield lines
  }
  yield complete()
}

const SPACE = 0x20
const TAB = 0x09
const CARRIAGE_RETURN = 0x0d

/** Measures the white space of ASCII from `start` on: spaces, and all characters from tab to carriage return. */
function blanksAt(chunk: Buffer, start: number): { length: number; newlines: number } {
  let newlines = 0
  let at = start
  for (; at < chunk.length; at++) {
    const byte = chunk[at] ?? 0
    if (byte !== SPACE && (byte < TAB || byte > CARRIAGE_RETURN)) break
    if (byte === NEWLINE) newlines += 1
  }
  return { length: at - start, newlines }
}
