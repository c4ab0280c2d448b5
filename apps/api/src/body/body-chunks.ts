// Reads the headers that describe a body, and yields the body's chunks as they arrive, inflated. A
// body may have several gzip members or zstd frames. Any other bytes after them are refused.
import type { IncomingMessage } from 'node:http'
import { finished, type Readable } from 'node:stream'
import * as zlib from 'node:zlib'
import { type Inflater, inflateMembers, UndecodableError } from '@sluice/process/inflate-members'
import {
  bodyTooLarge,
  bodyUnreadable,
  CallerGoneError,
  ProblemError,
  type SizeLimit,
} from '../request/problem-error.ts'

/**
 * The content codings of a body (RFC 9110, section 8.4), with the memory of each inflater: `fixed`
 * bytes, and `share` bytes for each byte of inflated text that is kept. The share is needed because
 * the windows of brotli (16 MiB) and zstd (8 MiB) are filled only by inflated text.
 */
export const INFLATER_MEMORY = {
  identity: { fixed: 0, share: 0 },
  gzip: { fixed: 128 * 1024, share: 0 },
  deflate: { fixed: 128 * 1024, share: 0 },
  br: { fixed: 512 * 1024, share: 1 },
  zstd: { fixed: 512 * 1024, share: 1 },
}

export type Coding = keyof typeof INFLATER_MEMORY

/**
 * Checks the media type, charset and coding of a body.
 * @param accepted media types in lower case.
 * @throws {ProblemError} 415.
 */
export function checkContentType(
  { headers }: IncomingMessage,
  accepted: readonly string[],
): { mediaType: string; coding: Coding } {
  const [mediaType = '', ...parameters] = (headers['content-type'] ?? '')
    .split(';')
    .map((part) => part.trim().toLowerCase())
  if (!accepted.includes(mediaType)) {
    const reason =
      mediaType === ''
        ? 'The header Content-Type is missing.'
        : 'This Content-Type is not supported.'
    throw new ProblemError('media_type_unsupported', {
      detail: `${reason} Send ${accepted.join(' or ')}.`,
    })
  }
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '')
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')
    throw new ProblemError('charset_unsupported')
  return { mediaType, coding: codingOf(headers['content-encoding'] ?? '') }
}

function codingOf(header: string): Coding {
  const name = header.trim().toLowerCase() || 'identity'
  if (name === 'x-gzip') return 'gzip'
  if (!isCoding(name)) throw new ProblemError('encoding_unsupported')
  return name
}

const isCoding = (name: string): name is Coding => Object.hasOwn(INFLATER_MEMORY, name)

type CompressedCoding = Exclude<Coding, 'identity'>

/** A frame of zstd may ask for a window of any size. RFC 9659 allows 8 MiB in HTTP. */
const ZSTD_WINDOW_LOG = 23

/**
 * The low four bits of a zlib stream's first byte are 8 (RFC 1950). Some clients send a raw deflate
 * stream instead.
 */
const isZlib = (first: number) => (first & 0x0f) === 8

function createInflater(coding: CompressedCoding, first: Buffer): Inflater {
  if (coding === 'gzip') return zlib.createGunzip()
  if (coding === 'br') return zlib.createBrotliDecompress()
  if (coding === 'zstd')
    return zlib.createZstdDecompress({
      params: { [zlib.constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG },
    })
  return isZlib(first[0] ?? 0) ? zlib.createInflate() : zlib.createInflateRaw()
}

interface ChunkBounds {
  /** The most bytes of the body, as sent and as inflated. */
  bytes: number
  limit: SizeLimit
  /** Aborts when nobody waits for the rest of the body. The reason is the error to throw. */
  stop: AbortSignal
}

/**
 * Yields a body's chunks, inflated. Leaves the body open and without listeners, so that the caller
 * can drain the rest.
 *
 * @throws {ProblemError} 413 above the bound, 400 if the body does not inflate, or the reason of
 * `stop`.
 */
export async function* bodyChunks(
  body: Readable,
  coding: Coding,
  bounds: ChunkBounds,
): AsyncGenerator<Buffer> {
  const ended = new AbortController()
  const stop = AbortSignal.any([bounds.stop, ended.signal])
  const sent = bounded(sentChunks(body, stop), bounds)
  try {
    yield* coding === 'identity' ? sent : bounded(inflate(sent, coding), bounds)
  } finally {
    ended.abort()
  }
}

async function* bounded(
  chunks: AsyncIterable<Buffer>,
  { bytes, limit }: Pick<ChunkBounds, 'bytes' | 'limit'>,
): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > bytes) throw bodyTooLarge(bytes, limit)
    yield chunk
  }
}

/**
 * Each zstd frame costs a separate stream, about 1 ms. The bound admits an import of 100 MiB in
 * frames of 105 KB.
 */
const MAX_MEMBERS = 1_000

async function* inflate(
  chunks: AsyncGenerator<Buffer>,
  coding: CompressedCoding,
): AsyncGenerator<Buffer> {
  const open = (beginning: Buffer, members: number) => {
    if (members === MAX_MEMBERS)
      throw bodyUnreadable(
        'not_decodable',
        `The body has more than ${MAX_MEMBERS} members or frames of ${coding}.`,
      )
    if (members > 0 && (coding === 'br' || coding === 'deflate')) throw notDecodable(coding)
    return createInflater(coding, beginning)
  }
  try {
    yield* inflateMembers(chunks, open)
  } catch (error) {
    throw error instanceof UndecodableError ? notDecodable(coding) : error
  }
}

function notDecodable(coding: CompressedCoding): ProblemError {
  return bodyUnreadable(
    'not_decodable',
    `The body is not valid ${coding}, or bytes follow its end.`,
  )
}

/**
 * Yields the chunks as sent. Not by `for await` over the body, which would destroy the connection
 * if the consumer throws.
 */
async function* sentChunks(body: Readable, stop: AbortSignal): AsyncGenerator<Buffer> {
  let onChange = () => {}
  let end: { error?: unknown } | undefined
  const wake = () => onChange()
  const unwatch = finished(body, { writable: false }, (error) => {
    end = error ? { error } : {}
    wake()
  })
  body.on('readable', wake)
  stop.addEventListener('abort', wake)
  try {
    for (;;) {
      if (stop.aborted) throw stop.reason
      const chunk: Buffer | null = body.destroyed ? null : body.read()
      if (chunk !== null) yield chunk
      else if (end === undefined) await new Promise<void>((resolve) => (onChange = resolve))
      else if (end.error !== undefined)
        throw new CallerGoneError('the caller hung up', { cause: end.error })
      else return
    }
  } finally {
    stop.removeEventListener('abort', wake)
    body.off('readable', wake)
    unwatch()
  }
}
