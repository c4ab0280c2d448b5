// Finds the records of a JSON text in its bytes, without parsing them.

/** A record of a JSON text: an element of a list, or a root value. */
export interface ScannedRecord {
  /** The member of the root object that lists it. Empty if the root is a list, or the record itself. */
  list: string
  /** A JSON Pointer to it within its root. */
  pointer: string
  /** The line of its first byte, from 1. */
  line: number
  bytes: Buffer
  /** It is longer than the bound: `bytes` is only its beginning. */
  isTooLong: boolean
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const NEWLINE = 0x0a
const SPACE = 0x20

/** A longer name is not the name of a list. */
const LONGEST_NAME = 100
/** The depth of records while none are read. */
const NOWHERE = -1

/**
 * Scans a text of one or more root values. A root list gives its elements. A root object with one of `lists` gives the elements of those lists and nothing
 * else. Any other root is a record itself. Libraries that parse JSON as a stream make a token of each value, which takes ten times as long, and they do not
 * tell the line of a record. It checks no JSON: the parser of each record does. Memory: the record that is read, at most `longest` bytes.
 */
export class JsonScanner {
  readonly #lists: ReadonlySet<string>
  readonly #longest: number
  #found: ScannedRecord[] = []
  #line = 1
  /** How many brackets are open. */
  #depth = 0
  #inString = false
  #isEscaped = false
  /** The last string directly in a root object, which may be the name of a list. */
  #name = ''
  #inName = false
  /** How many brackets are open around a record. */
  #recordDepth = 0
  #inRecord = false
  #recordLine = 1
  #list = ''
  #index = 0
  #pieces: Buffer[] = []
  #bytes = 0
  /** Where the record goes on in the chunk. */
  #start = 0

  constructor(lists: ReadonlySet<string>, longest: number) {
    this.#lists = lists
    this.#longest = longest
  }

  /** Takes the next bytes of the text, and returns the records that they complete. */
  push(chunk: Buffer): ScannedRecord[] {
    this.#found = []
    this.#start = 0
    for (let at = 0; at < chunk.length; at++) {
      if (this.#inString) at = this.#readString(chunk, at)
      else this.#readByte(chunk, at)
    }
    if (this.#inRecord) this.#keep(chunk, chunk.length)
    return this.#found
  }

  /** Ends the text, and returns the record that is not complete. A number that ends the text is complete. */
  end(): ScannedRecord[] {
    this.#found = []
    if (this.#inRecord) this.#emit()
    return this.#found
  }

  /** Reads a string up to its end or the end of the chunk. Most bytes are in strings. Returns where it ended. */
  #readString(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      if (this.#isEscaped) this.#isEscaped = false
      else if (byte === BACKSLASH) this.#isEscaped = true
      else if (byte === QUOTE) {
        this.#inString = false
        this.#inName = false
        if (this.#inRecord && this.#depth === this.#recordDepth) this.#endRecord(chunk, at + 1)
        return at
      }
      if (this.#inName && this.#name.length <= LONGEST_NAME) this.#name += String.fromCharCode(byte)
    }
    return chunk.length
  }

  #readByte(chunk: Buffer, at: number): void {
    const byte = chunk[at] ?? 0
    if (byte === QUOTE) this.#openString(at)
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) this.#open(byte, at)
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) this.#close(chunk, at)
    else if (byte <= SPACE || byte === COMMA) this.#endScalar(chunk, at)
    else if (byte !== COLON) this.#beginRecord(at)
    if (byte === NEWLINE) this.#line += 1
  }

  #openString(at: number): void {
    this.#beginRecord(at)
    this.#inString = true
    this.#inName = this.#depth === 1 && this.#recordDepth !== 1
    if (this.#inName) this.#name = ''
  }

  #open(bracket: number, at: number): void {
    if (this.#depth === 0 && bracket === OPEN_LIST) this.#beginList(1, '')
    else if (this.#depth === 1 && this.#recordDepth !== 1 && bracket === OPEN_LIST && this.#lists.has(this.#name))
      this.#beginList(2, this.#name)
    else this.#beginRecord(at)
    this.#depth += 1
  }

  #close(chunk: Buffer, at: number): void {
    this.#endScalar(chunk, at)
    this.#depth = Math.max(0, this.#depth - 1)
    if (this.#inRecord && this.#depth === this.#recordDepth) this.#endRecord(chunk, at + 1)
    else if (this.#depth < this.#recordDepth) this.#recordDepth = NOWHERE
    if (this.#depth === 0) this.#recordDepth = 0
  }

  /** The records are now the elements of a list, and the root object is none. */
  #beginList(depth: number, list: string): void {
    this.#recordDepth = depth
    this.#list = list
    this.#index = 0
    this.#inRecord = false
    this.#pieces = []
    this.#bytes = 0
  }

  #beginRecord(at: number): void {
    if (this.#inRecord || this.#depth !== this.#recordDepth) return
    this.#inRecord = true
    this.#recordLine = this.#line
    this.#start = at
    if (this.#depth === 0) this.#list = ''
  }

  #endScalar(chunk: Buffer, at: number): void {
    if (this.#inRecord && this.#depth === this.#recordDepth) this.#endRecord(chunk, at)
  }

  #endRecord(chunk: Buffer, end: number): void {
    this.#keep(chunk, end)
    this.#emit()
  }

  #keep(chunk: Buffer, end: number): void {
    if (this.#bytes <= this.#longest) this.#pieces.push(chunk.subarray(this.#start, end))
    this.#bytes += end - this.#start
  }

  #emit(): void {
    const list = this.#list && `/${this.#list}`
    this.#found.push({
      list: this.#list,
      pointer: this.#recordDepth === 0 ? '' : `${list}/${this.#index++}`,
      line: this.#recordLine,
      bytes: Buffer.concat(this.#pieces),
      isTooLong: this.#bytes > this.#longest,
    })
    this.#inRecord = false
    this.#pieces = []
    this.#bytes = 0
  }
}
