import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from 'node:zlib'
import type { Coding } from './body-head.ts'

/** The low four bits of a zlib stream's first byte name its method, 8 for deflate (RFC 1950); a raw stream (what some clients send) has others. */
const isZlib = (first: number) => (first & 0x0f) === 8

/** A stream that inflates a body of this coding, given the body's first chunk; none for one that is not compressed. */
export function createInflater(coding: Coding, first: Buffer): Transform | undefined {
  if (coding === 'gzip') return createGunzip()
  if (coding === 'br') return createBrotliDecompress()
  if (coding === 'zstd') return createZstdDecompress()
  if (coding === 'deflate') return isZlib(first[0] ?? 0) ? createInflate() : createInflateRaw()
  return undefined
}
