// Finds selected values in the bytes of a JSON text, without parsing them.
import { type Bounded, createBoundedBytes, LONGEST_RECORD_BYTES } from './bounded-bytes.ts'

export interface ScannedValue extends Bounded {
  /** The path that selected the value. */
  path: string
  /** A JSON Pointer to the value within its root. */
  pointer: string
  /** The line on which the value begins, from 1. */
  line: number
  /** If the value is what remains of a root without the elements of its lists: the first list. */
  list?: { path: string; elements: number }
}

interface Choice {
  path: string
  isChosen: boolean
  /** The choices inside it, by a member's name, or by `*` for all elements of a list. */
  inside: Map<string, Choice>
}

/** An object or a list that may contain selected values. */
interface Container {
  choice: Choice
  isList: boolean
  pointer: string
  /** The number of elements of the list that have begun. */
  elements: number
}

const [QUOTE, BACKSLASH, COMMA, COLON, NEWLINE, SPACE] = [0x22, 0x5c, 0x2c, 0x3a, 0x0a, 0x20]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/** What remains of a longer root is left out. */
const LONGEST_FRAME_BYTES = 64 * 1024

/** A longer name is cut, because no path contains it. */
const LONGEST_NAME = 100

/**
 * Scans a text with one or more roots for the values that paths select. A path is a JSON Pointer
 * with `*` for all elements of a list, such as `/messages/*`. The path `''` selects a root, unless
 * another path finds a list in the root: then it selects what remains of the root. The scanner does
 * not check JSON: the parser of a value does. Libraries that parse JSON as a stream need ten times
 * as much time, and do not know lines.
 */
export class JsonScanner {
  readonly #root: Choice
  #found: ScannedValue[] = []
  #line = 1
  #hasBegun = false
  readonly #containers: Container[] = []
  /** Whether the next string is the name of a member. */
  #isBeforeName = false
  #name = ''
  /**
   * Whether the next byte is in a string, a list or an object (`nested`), in a number or a word
   * (`scalar`), or between values.
   */
  #inside: 'nested' | 'scalar' | undefined
  /** The number of open brackets within the nested value. */
  #depth = 0
  #isInString = false
  #isEscaped = false
  /** The selected value that is being read. */
  #kept: Omit<ScannedValue, keyof Bounded> | undefined
  readonly #value = createBoundedBytes(LONGEST_RECORD_BYTES)
  /** The first list of a selected root, and what was read of the root outside its lists. */
  #list: ScannedValue['list']
  readonly #frame = createBoundedBytes(LONGEST_FRAME_BYTES)
  /** Where the kept value (or a root's remains) and the name begin in this chunk, or continue. */
  #start = 0
  #nameStart = 0

  constructor(paths: readonly string[]) {
    this.#root = choiceOf(paths)
  }

  /** Reads the next bytes of the text. Returns the values that end in them. */
  push(chunk: Buffer): ScannedValue[] {
    this.#found = []
    this.#start = 0
    this.#nameStart = 0
    for (let at = 0; at < chunk.length; )
      at = this.#inside === 'nested' ? this.#readNested(chunk, at) : this.#readByte(chunk, at)
    if (this.#inside === 'nested' && this.#isBeforeName) this.#keepName(chunk, chunk.length)
    if (this.#kept) this.#value.add(chunk.subarray(this.#start))
    else if (this.#list && !this.#containers.at(-1)?.isList)
      this.#frame.add(chunk.subarray(this.#start))
    return this.#found
  }

  /**
   * Ends the text. Returns its last value if that is cut off, or is a number, because only the end
   * of the text shows where a number ends.
   */
  end(): ScannedValue[] {
    this.#found = []
    this.#emit()
    return this.#found
  }

  /** Returns whether the text has a root, and all of its roots have ended. */
  isComplete(): boolean {
    return this.#hasBegun && this.#containers.length === 0
  }

  /** Uses local variables, because nearly all bytes pass through this loop. */
  #readNested(chunk: Buffer, from: number): number {
    const end = chunk.length
    let at = this.#isEscaped ? from + 1 : from
    let depth = this.#depth
    let isInString = this.#isInString
    let isDone = false
    let lines = 0
    while (at < end && !isDone) {
      const byte = chunk[at++]
      if (isInString) {
        if (byte === BACKSLASH) at++
        else if (byte === QUOTE) {
          isInString = false
          isDone = depth === 0
        }
      } else if (byte === QUOTE) isInString = true
      else if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth++
      else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) isDone = --depth === 0
      else if (byte === NEWLINE) lines++
    }
    this.#line += lines
    this.#depth = depth
    this.#isInString = isInString
    this.#isEscaped = at > end
    if (isDone) this.#endNested(chunk, at)
    return Math.min(at, end)
  }

  #endNested(chunk: Buffer, end: number): void {
    this.#inside = undefined
    if (this.#isBeforeName) this.#keepName(chunk, end - 1)
    else this.#endValue(chunk, end)
  }

  /** Reads a byte between values, or in a number or a word. */
  #readByte(chunk: Buffer, at: number): number {
    const byte = chunk[at] ?? 0
    if (
      byte > SPACE &&
      byte !== COMMA &&
      byte !== COLON &&
      byte !== CLOSE_LIST &&
      byte !== CLOSE_OBJECT
    )
      return this.#inside === 'scalar' ? at + 1 : this.#beginValue(byte, chunk, at)
    if (this.#inside === 'scalar') {
      this.#inside = undefined
      this.#endValue(chunk, at)
    }
    if (byte === NEWLINE) this.#line++
    else if (byte === COMMA) this.#isBeforeName = this.#containers.at(-1)?.isList === false
    else if (byte === COLON) this.#isBeforeName = false
    else if (byte > SPACE) this.#leave(chunk, at + 1)
    return at + 1
  }

  /** Begins a name or a value. Returns where to continue reading. */
  #beginValue(byte: number, chunk: Buffer, at: number): number {
    this.#hasBegun = true
    if (byte === QUOTE && this.#isBeforeName) {
      this.#name = ''
      this.#nameStart = at + 1
    } else {
      const container = this.#containers.at(-1)
      const key = container?.isList ? '*' : this.#name
      const choice = container === undefined ? this.#root : container.choice.inside.get(key)
      const last = container?.isList ? container.elements++ : key
      const pointer = container === undefined ? '' : `${container.pointer}/${last}`
      if (choice?.isChosen) this.#beginKept(choice.path, pointer, at)
      if (choice && this.#enter(byte, choice, pointer)) {
        if (byte === OPEN_LIST) this.#leaveOut(choice.path, chunk, at + 1)
        return at + 1
      }
    }
    this.#inside =
      byte === QUOTE || byte === OPEN_LIST || byte === OPEN_OBJECT ? 'nested' : 'scalar'
    return at
  }

  #enter(byte: number, choice: Choice, pointer: string): boolean {
    const isList = byte === OPEN_LIST
    const isEntered = isList
      ? choice.inside.has('*')
      : byte === OPEN_OBJECT && choice.inside.size > 0
    if (!isEntered) return false
    this.#containers.push({ choice, isList, pointer, elements: 0 })
    this.#isBeforeName = !isList
    return true
  }

  /** Cuts a list whose elements are selected out of its root, which keeps what is around the list. */
  #leaveOut(path: string, chunk: Buffer, end: number): void {
    const before = chunk.subarray(this.#start, end)
    if (this.#list) this.#frame.add(before)
    else if (this.#kept) {
      this.#value.add(before)
      const { bytes } = this.#drop()
      if (this.#containers.length === 1) return
      this.#list = { path, elements: 0 }
      this.#frame.add(bytes)
    }
  }

  #leave(chunk: Buffer, end: number): void {
    const { isList, choice, elements } = this.#containers.pop() ?? {}
    this.#isBeforeName = false
    if (this.#list && isList) {
      this.#start = end - 1
      if (this.#list.path === choice?.path) this.#list.elements = elements ?? 0
    }
    if (this.#containers.length > 0) return
    this.#endValue(chunk, end)
    if (this.#list === undefined) return
    this.#frame.add(chunk.subarray(this.#start, end))
    const root = { path: '', pointer: '', line: this.#line, list: this.#list }
    this.#found.push({ ...root, ...this.#frame.take() })
    this.#list = undefined
  }

  #beginKept(path: string, pointer: string, at: number): void {
    this.#kept = { path, pointer, line: this.#line }
    this.#start = at
  }

  #endValue(chunk: Buffer, end: number): void {
    if (this.#kept === undefined || (this.#kept.path === '' && this.#containers.length > 0)) return
    this.#value.add(chunk.subarray(this.#start, end))
    this.#emit()
  }

  #keepName(chunk: Buffer, end: number): void {
    if (this.#name.length <= LONGEST_NAME)
      this.#name += chunk.toString('latin1', this.#nameStart, end)
  }

  #emit(): void {
    const kept = this.#kept
    const value = this.#drop()
    if (kept) this.#found.push({ ...kept, ...value })
  }

  #drop(): Bounded {
    this.#kept = undefined
    return this.#value.take()
  }
}

function choiceOf(paths: readonly string[]): Choice {
  const root: Choice = { path: '', isChosen: false, inside: new Map() }
  for (const path of paths) {
    let choice = root
    for (const name of path.split('/').slice(1)) {
      const next = choice.inside.get(name) ?? {
        path: `${choice.path}/${name}`,
        isChosen: false,
        inside: new Map(),
      }
      choice.inside.set(name, next)
      choice = next
    }
    choice.isChosen = true
  }
  return root
}
