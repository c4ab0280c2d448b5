// The content codings of a compressed body (RFC 9110, section 8.4), and the streams that inflate them.
import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from 'node:zlib'
import { encodingUnsupported } from './problems.ts'

/** Compressed codings. */
export type CompressedCoding = 'gzip' | 'deflate' | 'br' | 'zstd'

/** All codings that a body can have. */
export type Coding = CompressedCoding | 'identity'

const CODINGS: Readonly<Record<string, Coding>> = {
  '': 'identity',
  identity: 'identity',
  gzip: 'gzip',
  'x-gzip': 'gzip',
  deflate: 'deflate',
  br: 'br',
  zstd: 'zstd',
}

/** Reads a Content-Encoding header. @throws {ProblemError} 415 for an unknown coding. */
export function codingOf(header: string): Coding {
  const coding = CODINGS[header.trim().toLowerCase()]
  if (coding === undefined) throw encodingUnsupported()
  return coding
}

/** The low four bits of a zlib stream's first byte name its method, 8 for deflate (RFC 1950). Some clients send a raw stream instead. */
const isZlib = (first: number) => (first & 0x0f) === 8

/** Creates the stream that inflates a body, given the body's first chunk. */
export function createInflater(coding: CompressedCoding, first: Buffer): Transform {
  if (coding === 'gzip') return createGunzip()
  if (coding === 'br') return createBrotliDecompress()
  if (coding === 'zstd') return createZstdDecompress()
  return isZlib(first[0] ?? 0) ? createInflate() : createInflateRaw()
}
