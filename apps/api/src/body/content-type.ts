// Reads the headers that describe a body: its media type, its charset, its coding.
import type { IncomingMessage } from 'node:http'
import { mediaTypeUnsupported, ProblemError } from '../request/problem-error.ts'

/**
 * The content codings of a body (RFC 9110, section 8.4), each with the memory of its inflater: `fixed` bytes, and
 * `share` bytes more for each byte of inflated text that is kept, because the windows of brotli (16 MiB) and zstd
 * (8 MiB) fill only with what was inflated.
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
 * Checks a body's media type, charset and coding.
 *
 * @param accepted the accepted media types, in lower case.
 * @throws {ProblemError} 415.
 */
export function checkContentType(
  { headers }: IncomingMessage,
  accepted: readonly string[],
): { mediaType: string; coding: Coding } {
  const [mediaType = '', ...parameters] = (headers['content-type'] ?? '')
    .split(';')
    .map((part) => part.trim().toLowerCase())
  if (!accepted.includes(mediaType)) throw mediaTypeUnsupported(mediaType, accepted)
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '')
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8') throw new ProblemError('charset_unsupported')
  return { mediaType, coding: codingOf(headers['content-encoding'] ?? '') }
}

function codingOf(header: string): Coding {
  const name = header.trim().toLowerCase()
  if (name === '') return 'identity'
  if (name === 'x-gzip') return 'gzip'
  if (!isCoding(name)) throw new ProblemError('encoding_unsupported')
  return name
}

const isCoding = (name: string): name is Coding => Object.hasOwn(INFLATER_MEMORY, name)
