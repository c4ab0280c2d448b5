// Finds where one JSON value of a stream ends, and keeps its text for `JSON.parse`.

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/** A value that is kept has at most this many bytes, more than the largest message of any format needs. */
export const MAX_VALUE_BYTES = 16 * 1024 * 1024

/** A value of which some chunks may still come. */
export interface JsonValue {
  /** Reads on at the offset. Returns the offset behind what belongs to the value. */
  read(chunk: Buffer, offset: number): number
  hasEnded(): boolean
  isTooLong(): boolean
  /** The bytes so far, at most `MAX_VALUE_BYTES` of them; none unless the value is kept. */
  bytes(): Buffer
}

/** Makes a value that begins with this byte. Brackets are counted, not matched: `JSON.parse` checks the rest. */
export function createJsonValue(first: number, isKept: boolean): JsonValue {
  const isText = first === QUOTE
  const isScalar = !isText && first !== OPEN_OBJECT && first !== OPEN_ARRAY
  const chunks: Buffer[] = []
  let length = 0
  let depth = 0
  let isInText = false
  let isEscaped = false
  let isDone = false

  return {
    read(chunk, offset) {
      const end = isScalar ? endOfScalar(chunk, offset) : endOfNested(chunk, offset)
      keep(chunk.subarray(offset, end))
      return end
    },
    hasEnded: () => isDone,
    isTooLong: () => length > MAX_VALUE_BYTES,
    bytes: () => Buffer.concat(chunks),
  }

  function keep(part: Buffer) {
    length += part.length
    if (isKept && length <= MAX_VALUE_BYTES) chunks.push(part)
  }

  function endOfScalar(chunk: Buffer, offset: number): number {
    let i = offset
    while (i < chunk.length && !endsScalar(chunk[i])) i++
    isDone = i < chunk.length
    return i
  }

  /** These loops run for each byte of a file, so they work on local variables. */
  function endOfNested(chunk: Buffer, offset: number): number {
    const end = chunk.length
    let i = offset
    if (isEscaped && i < end) i++
    let level = depth
    let inText = isInText
    while (i < end && !isDone) {
      const byte = chunk[i++]
      if (inText) {
        if (byte === BACKSLASH) i++
        else if (byte === QUOTE) {
          inText = false
          isDone = level === 0
        }
      } else if (byte === QUOTE) inText = true
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) level++
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) isDone = --level === 0
    }
    depth = level
    isInText = inText
    isEscaped = i > end
    return Math.min(i, end)
  }
}

/** Returns whether the byte is white space by RFC 8259. */
export function isJsonSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

function endsScalar(byte: number | undefined): boolean {
  return byte === COMMA || byte === CLOSE_ARRAY || byte === CLOSE_OBJECT || isJsonSpace(byte)
}
