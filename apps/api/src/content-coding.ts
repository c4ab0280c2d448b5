// The content codings of a compressed body (RFC 9110, section 8.4), and the streams that inflate them.
import type { Transform } from 'node:stream'
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'
import { encodingUnsupported } from './problems.ts'

/** Compressed codings. */
export type CompressedCoding = 'gzip' | 'deflate' | 'br' | 'zstd'

/** All codings that a body can have. */
export type Coding = CompressedCoding | 'identity'

const CODINGS: ReadonlyMap<string, Coding> = new Map([
  ['', 'identity'],
  ['identity', 'identity'],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['br', 'br'],
  ['zstd', 'zstd'],
])

/** Reads a Content-Encoding header. @throws {ProblemError} 415 for an unknown coding. */
export function codingOf(header: string): Coding {
  const coding = CODINGS.get(header.trim().toLowerCase())
  if (coding === undefined) throw encodingUnsupported()
  return coding
}

/** A stream that inflates, and the number of compressed bytes that it has used. */
export type Inflater = Transform & { readonly bytesWritten: number }

/** A frame of zstd may ask for a window of any size. RFC 9659 allows 8 MiB in HTTP. */
const ZSTD_WINDOW_LOG = 23

/** The low four bits of a zlib stream's first byte name its method, 8 for deflate (RFC 1950). Some clients send a raw stream instead. */
const isZlib = (first: number) => (first & 0x0f) === 8

/** Creates the stream that inflates a body or the rest of it, given its first bytes. */
export function createInflater(coding: CompressedCoding, first: Buffer): Inflater {
  if (coding === 'gzip') return createGunzip()
  if (coding === 'br') return createBrotliDecompress()
  if (coding === 'zstd') return createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } })
  return isZlib(first[0] ?? 0) ? createInflate() : createInflateRaw()
}

/**
 * How much memory an inflater takes: `fixed` bytes, and for each byte of inflated text that is kept `share` bytes more, as
 * the windows of brotli (16 MiB) and zstd (8 MiB) fill only with what was inflated.
 */
export const INFLATER_MEMORY: Readonly<Record<Coding, { fixed: number; share: number }>> = {
  identity: { fixed: 0, share: 0 },
  gzip: { fixed: 128 * 1024, share: 0 },
  deflate: { fixed: 128 * 1024, share: 0 },
  br: { fixed: 512 * 1024, share: 1 },
  zstd: { fixed: 512 * 1024, share: 1 },
}
