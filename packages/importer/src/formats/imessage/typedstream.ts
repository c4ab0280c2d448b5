// The text in `attributedBody`: an attributed string in the form of NeXTSTEP's typedstream.
const STRING = Buffer.from('NSString')
/** Begins the bytes of a string. */
const PLUS = 0x2b
/** The mark and the name of the class are at most this far before the string. */
const NEAR = 20
/** A length of this byte stands in the next two bytes, of the one after it in four. */
const TWO_BYTES = 0x81
const FOUR_BYTES = 0x82

/** Returns the first string of the stream, which is the text. Undefined if the stream has none. */
export function textOfBody(body: Uint8Array): string | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const name = bytes.indexOf(STRING)
  const plus = name === -1 ? -1 : bytes.indexOf(PLUS, name + STRING.length)
  if (plus === -1 || plus > name + STRING.length + NEAR || plus + 5 > bytes.length) return undefined
  const first = bytes.readUInt8(plus + 1)
  if (first === TWO_BYTES) return textAt(bytes, plus + 4, bytes.readUInt16LE(plus + 2))
  if (first === FOUR_BYTES && plus + 6 <= bytes.length) return textAt(bytes, plus + 6, bytes.readUInt32LE(plus + 2))
  return textAt(bytes, plus + 2, first)
}

function textAt(bytes: Buffer, start: number, length: number): string | undefined {
  return start + length > bytes.length ? undefined : bytes.toString('utf8', start, start + length)
}
