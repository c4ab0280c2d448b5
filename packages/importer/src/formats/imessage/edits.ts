// Reads what a message says after its sender has edited it, from `message_summary_info`, a binary
// property list of Apple.
import { asArray, asObject, type JsonObject } from '../values/record-fields.ts'
import { textOfBody } from './typedstream.ts'

/** Nothing that is read nests deeper. A list that contains itself would exceed the stack. */
const DEEPEST = 8
/** No message's list has as many objects. Each reference to an object counts. */
const MOST_OBJECTS = 10_000

/** The remaining parts of a message. `hasUnsent`: its sender has unsent a part. */
export interface Edits {
  text: string
  hasUnsent: boolean
}

const UNEDITED: Edits = { text: '', hasUnsent: false }

/** Returns each part's last version. `ec` has versions by part, `rp` the parts that were unsent. */
export function editsIn(info: unknown): Edits {
  // Nearly all messages were never edited.
  if (!(info instanceof Uint8Array)) return UNEDITED
  const { ec, rp } = asObject(parsePropertyList(Buffer.from(info))) ?? {}
  const parts = Object.entries(asObject(ec) ?? {}).sort(
    ([one], [other]) => Number(one) - Number(other),
  )
  const texts = parts.map(([, versions]) => textOfBody(asObject(asArray(versions).at(-1))?.t))
  return { text: texts.filter(Boolean).join('\n'), hasUnsent: asArray(rp).length > 0 }
}

/** Reads the texts, bytes and lists in a `bplist00`. Numbers become undefined. */
function parsePropertyList(bytes: Buffer): unknown {
  if (!bytes.toString('latin1', 0, 8).startsWith('bplist')) return undefined
  try {
    return readObjects(bytes)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** Reads the objects of a list. Throws RangeError if an offset is outside the list. */
function readObjects(bytes: Buffer): unknown {
  const trailer = bytes.length - 32
  const [offsetSize, referenceSize] = [bytes.readUInt8(trailer + 6), bytes.readUInt8(trailer + 7)]
  const table = bytes.readUInt32BE(trailer + 28)
  let left = MOST_OBJECTS

  function objectAt(number: number, depth: number): unknown {
    left -= 1
    if (depth === 0 || left < 0)
      throw new RangeError('a property list that nests too deep, or is too large')
    const at = bytes.readUIntBE(table + number * offsetSize, offsetSize)
    const kind = bytes.readUInt8(at) >> 4
    const short = bytes.readUInt8(at) & 0xf
    const size = short === 0xf ? 2 ** (bytes.readUInt8(at + 1) & 0xf) : 0
    const count = size === 0 ? short : bytes.readUIntBE(at + 2, size)
    const start = size === 0 ? at + 1 : at + 2 + size
    const reference = (index: number) =>
      objectAt(bytes.readUIntBE(start + index * referenceSize, referenceSize), depth - 1)
    if (kind === 0x4) return bytes.subarray(start, start + count)
    if (kind === 0x5) return bytes.toString('latin1', start, start + count)
    if (kind === 0xa)
      return Array.from({ length: Math.min(count, left) }, (_, index) => reference(index))
    if (kind !== 0xd) return undefined
    const dictionary: JsonObject = Object.fromEntries(
      Array.from({ length: Math.min(count, left) }, (_, index) => [
        String(reference(index)),
        reference(count + index),
      ]),
    )
    return dictionary
  }
  return objectAt(bytes.readUInt32BE(trailer + 20), DEEPEST)
}
