// Reads chosen values of a JSON text of any size as a stream, in the memory of the largest chosen value.
import { isUtf8 } from 'node:buffer'
import { createJsonValue, isJsonSpace, type JsonValue, MAX_VALUE_BYTES } from './json-value.ts'
import { SHOWN_BYTES } from './read-lines.ts'

/**
 * Which values are read. A place is a JSON Pointer with `*` for each element of an array: `/messages/*` is each message.
 * The whole text is the place ''.
 */
export interface JsonSelection {
  /** Objects and arrays whose members are read one by one. All around them must be entered, too. */
  enter: readonly string[]
  /** Values that are read as a whole. All others are skipped. */
  take: readonly string[]
}

interface Place {
  /** The place as the selection names it. */
  at: string
  pointer: string
}

/** A value that was taken, or a fault. Behind a fault of the text around the values nothing more is read. */
export type JsonEntry = Place & Parsed

type Parsed = { value: unknown; fault?: never } | { value?: never; fault: string; text: string }

interface Container extends Place {
  isArray: boolean
  /** How many members were begun. */
  members: number
}

type Expected = 'a value' | 'a value or the end' | 'a key' | 'a key or the end' | ':' | ', or the end' | 'nothing'

const [QUOTE, COMMA, COLON] = [0x22, 0x2c, 0x3a]
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]
const ROOT: Place = { at: '', pointer: '' }

/** A text of at most this many bytes is parsed at once, which takes some 50 MiB. A longer one is read value by value. */
const WHOLE_BYTES = 8 * 1024 * 1024

/**
 * Reads a JSON text in UTF-8. To find only where values end, and to leave the rest to `JSON.parse`, is three times as fast as
 * stream-json, which makes each token; to parse a shorter text at once, ten times.
 *
 * @param wholeBytes how long a text may be that is parsed at once.
 * @returns lists of entries, each of what a chunk of the stream completes.
 */
export async function* readJson(
  stream: AsyncIterable<Uint8Array>,
  selection: JsonSelection,
  wholeBytes = WHOLE_BYTES,
): AsyncGenerator<readonly JsonEntry[]> {
  const reader = createReader(selection)
  let begun: Buffer[] | undefined = []
  let bytes = 0
  for await (const chunk of stream) {
    const part = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    bytes += part.length
    begun?.push(part)
    if (begun && bytes <= wholeBytes) continue
    yield (begun ?? [part]).flatMap(reader.read)
    begun = undefined
    if (reader.isBroken()) return
  }
  yield begun ? readWhole(begun, selection, reader) : reader.end()
}

/** If the text is not valid, the reader looks for what is valid in it. */
function readWhole(chunks: readonly Buffer[], selection: JsonSelection, reader: Reader): readonly JsonEntry[] {
  const entries: JsonEntry[] = []
  const bytes = Buffer.concat(chunks)
  const parsed = parse(bytes.subarray(lengthOfByteOrderMark(bytes)))
  if (parsed.fault !== undefined) return [...reader.read(bytes), ...reader.end()]
  collect({ ...ROOT, value: parsed.value }, selection, entries)
  return entries
}

function collect(entry: Place & { value: unknown }, selection: JsonSelection, entries: JsonEntry[]) {
  const { at, pointer, value } = entry
  const isEntered = typeof value === 'object' && value !== null && selection.enter.includes(at)
  if (!isEntered) {
    if (selection.take.includes(at)) entries.push(entry)
  } else if (Array.isArray(value)) {
    const element = `${at}/*`
    value.forEach((one, i) => {
      collect({ at: element, pointer: `${pointer}/${i}`, value: one }, selection, entries)
    })
  } else {
    for (const [key, one] of Object.entries(value)) collect({ ...memberOf(entry, key), value: one }, selection, entries)
  }
}

function memberOf({ at, pointer }: Place, key: string): Place {
  const member = `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
  return { at: at + member, pointer: pointer + member }
}

type Reader = ReturnType<typeof createReader>

function createReader(selection: JsonSelection) {
  const entered = new Set(selection.enter)
  const taken = new Set(selection.take)
  const open: Container[] = []
  let expected: Expected = 'a value'
  let place = ROOT
  let value: JsonValue | undefined
  let key: JsonValue | undefined
  let entries: JsonEntry[] = []
  let isBroken = false
  let isStart = true

  return { read, end, isBroken: () => isBroken }

  function read(chunk: Buffer): readonly JsonEntry[] {
    entries = []
    let i = isStart ? lengthOfByteOrderMark(chunk) : 0
    isStart = false
    while (i < chunk.length && !isBroken) i = readOn(chunk, i)
    return entries
  }

  function end(): readonly JsonEntry[] {
    entries = []
    if (value && open.length === 0) endValue(value)
    if (!isBroken && expected !== 'nothing') fail('the file ends before its JSON does')
    return entries
  }

  function readOn(chunk: Buffer, i: number): number {
    const part = value ?? key
    if (!part) return readByte(chunk[i] ?? 0, i)
    const next = part.read(chunk, i)
    if (part.hasEnded()) part === value ? endValue(part) : endKey(part)
    return next
  }

  function readByte(byte: number, i: number): number {
    if (isJsonSpace(byte)) return i + 1
    if (expected === 'a value' || (expected === 'a value or the end' && byte !== CLOSE_ARRAY))
      return beginValue(byte, i)
    if (byte === QUOTE && (expected === 'a key' || expected === 'a key or the end')) {
      key = createJsonValue(byte, true)
      return i
    }
    readPunctuation(byte)
    return i + 1
  }

  function readPunctuation(byte: number) {
    const container = open.at(-1)
    if (expected === ':' && byte === COLON) expected = 'a value'
    else if (expected === ', or the end' && byte === COMMA) expected = container?.isArray ? 'a value' : 'a key'
    else if (container && expected.endsWith('the end') && byte === (container.isArray ? CLOSE_ARRAY : CLOSE_OBJECT))
      leave()
    else fail(`not valid JSON: expected ${expected}, found ${JSON.stringify(String.fromCharCode(byte))}`)
  }

  function beginValue(byte: number, i: number): number {
    const container = open.at(-1)
    if (container?.isArray) place = { at: `${container.at}/*`, pointer: `${container.pointer}/${container.members++}` }
    if ((byte === OPEN_OBJECT || byte === OPEN_ARRAY) && entered.has(place.at)) {
      const isArray = byte === OPEN_ARRAY
      open.push({ ...place, isArray, members: 0 })
      expected = isArray ? 'a value or the end' : 'a key or the end'
      return i + 1
    }
    value = createJsonValue(byte, taken.has(place.at))
    return i
  }

  function endValue(ended: JsonValue) {
    value = undefined
    expected = open.length > 0 ? ', or the end' : 'nothing'
    if (taken.has(place.at)) entries.push({ ...place, ...parseValue(ended) })
  }

  function endKey(ended: JsonValue) {
    key = undefined
    expected = ':'
    const container = open.at(-1)
    const parsed = parse(ended.bytes())
    if (parsed.fault !== undefined || !container) return fail('not valid JSON: a key is no string')
    place = memberOf(container, String(parsed.value))
  }

  function leave() {
    open.pop()
    expected = open.length > 0 ? ', or the end' : 'nothing'
  }

  function fail(fault: string) {
    isBroken = true
    entries.push({ ...place, fault, text: '' })
  }
}

function parseValue(ended: JsonValue): Parsed {
  const bytes = ended.bytes()
  if (!ended.isTooLong()) return parse(bytes)
  return { fault: `more than ${MAX_VALUE_BYTES} bytes`, text: bytes.toString('utf8', 0, SHOWN_BYTES) }
}

function parse(bytes: Buffer): Parsed {
  const text = bytes.toString('utf8')
  if (!isUtf8(bytes)) return { fault: 'not valid UTF-8', text }
  try {
    return { value: JSON.parse(text) }
  } catch {
    return { fault: 'not valid JSON', text }
  }
}

function lengthOfByteOrderMark(chunk: Buffer): number {
  return chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf ? 3 : 0
}
