// Reads the text of `attributedBody`, an attributed string in NeXTSTEP's typedstream format.

/** The mark `+` of a string is at most this far behind the beginning of its class's name. */
const NEAR = 28
/** A length above 127 has this number of bytes, after a byte that announces it. */
const LENGTH_BYTES = new Map([
  [0x81, 2],
  [0x82, 4],
])

/** Returns the stream's first string, which is the text, or '' if it has none or is cut off. */
export function textOfBody(body: unknown): string {
  if (!(body instanceof Uint8Array)) return ''
  // If the stream is cut off, its last length may be at the end.
  const bytes = Buffer.concat([body, Buffer.alloc(8)])
  const name = bytes.indexOf('NSString')
  const plus = bytes.indexOf('+', name)
  if (name === -1 || plus === -1 || plus > name + NEAR) return ''
  const first = bytes.readUInt8(plus + 1)
  const size = LENGTH_BYTES.get(first) ?? 0
  const start = plus + 2 + size
  const end = start + (size === 0 ? first : bytes.readUIntLE(plus + 2, size))
  return end > body.length ? '' : bytes.toString('utf8', start, end)
}
