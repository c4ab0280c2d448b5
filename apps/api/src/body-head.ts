import type { IncomingMessage } from 'node:http'
import type { ProblemCode } from '@sluice/contract'
import { ProblemError } from './problem-error.ts'

/** Codings of a body that are understood (RFC 9110, section 8.4). */
export type Coding = 'identity' | 'gzip' | 'deflate' | 'br' | 'zstd'

const CODINGS: Readonly<Record<string, Coding>> = {
  '': 'identity',
  identity: 'identity',
  gzip: 'gzip',
  'x-gzip': 'gzip',
  deflate: 'deflate',
  br: 'br',
  zstd: 'zstd',
}

/** How a body is written. */
export interface BodyKind {
  mediaType: string
  coding: Coding
}

/**
 * Judges a body by its headers alone: media type, charset and coding (415), and the length that it announces (413).
 *
 * @param mediaTypes accepted media types, in lower case.
 * @param bytes how large the body may be.
 */
export function judgeBodyHead(request: IncomingMessage, mediaTypes: readonly string[], bytes: number): BodyKind {
  const kind = judgeBodyKind(request, mediaTypes)
  judgeBodyLength(request, bytes)
  return kind
}

/** Judges a body by the length that it announces (413). */
export function judgeBodyLength({ headers }: IncomingMessage, bytes: number, limit?: SizeLimit): void {
  if (Number(headers['content-length'] ?? 0) > bytes) throw bodyTooLarge(bytes, limit)
}

/**
 * Judges a body by its media type, charset and coding (415).
 *
 * @param mediaTypes accepted media types, in lower case.
 */
export function judgeBodyKind({ headers }: IncomingMessage, mediaTypes: readonly string[]): BodyKind {
  const [mediaType = '', ...parameters] = (headers['content-type'] ?? '')
    .split(';')
    .map((part) => part.trim().toLowerCase())
  if (!mediaTypes.includes(mediaType)) {
    const given = mediaType === '' ? 'The header Content-Type is missing.' : 'This Content-Type is not supported.'
    refuse('media_type_unsupported', `${given} Send ${mediaTypes.join(' or ')}.`)
  }
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '')
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8') {
    refuse('charset_unsupported', 'Text is UTF-8: send charset=utf-8 or no charset at all.')
  }
  const coding = CODINGS[(headers['content-encoding'] ?? '').trim().toLowerCase()]
  if (coding === undefined) {
    throw new ProblemError(
      'encoding_unsupported',
      { detail: 'Send Content-Encoding gzip, br, deflate or zstd, or none.' },
      { 'accept-encoding': 'gzip, br, deflate, zstd' },
    )
  }
  return { mediaType, coding }
}

/** The limits that bound a body, as `GET /limits` names them. */
export type SizeLimit = 'bodyBytes' | 'batchBytes'

/** The body is larger than it may be, as sent or inflated. */
export function bodyTooLarge(bytes: number, limit: SizeLimit = 'bodyBytes'): ProblemError {
  return new ProblemError('body_too_large', {
    detail: `The body may have at most ${bytes} bytes (${limit}), compressed and inflated.`,
  })
}

function refuse(code: ProblemCode, detail: string): never {
  throw new ProblemError(code, { detail })
}
