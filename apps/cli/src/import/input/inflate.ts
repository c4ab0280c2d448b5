// Inflates files that were compressed with gzip or Zstandard.
import { pipeline, type Readable, type Transform } from 'node:stream'
import { constants, createGunzip, createZstdDecompress } from 'node:zlib'

/** Dumps such as Reddit's are compressed with a window of 2^31 bytes, which inflating needs as memory. */
const WINDOW_LOG_MAX = 31

/** How a kind of compressed file is named, how it begins, and how it is inflated. */
export interface Compression {
  extension: RegExp
  magic: Buffer
  createInflate: () => Transform
}

const COMPRESSIONS: readonly Compression[] = [
  { extension: /\.gz$/i, magic: Buffer.from([0x1f, 0x8b]), createInflate: () => createGunzip() },
  {
    extension: /\.zst$/i,
    magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]),
    createInflate: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: WINDOW_LOG_MAX } }),
  },
]

export function compressionOf(path: string): Compression | undefined {
  return COMPRESSIONS.find(({ extension }) => extension.test(path))
}

/** Finds the compression by the first bytes: standard input has no name. */
export function compressionOfBytes(beginning: Buffer): Compression | undefined {
  return COMPRESSIONS.find(({ magic }) => beginning.subarray(0, magic.length).equals(magic))
}

/** The inflated stream. An error of either stream ends both. */
export function inflate(compressed: Readable, { createInflate }: Compression): Readable {
  return pipeline(compressed, createInflate(), () => {})
}
