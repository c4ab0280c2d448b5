// Decodes 8-bit text and encoded words in a mail's header.
import { isUtf8 } from 'node:buffer'
import { toUtf8 } from './charsets.ts'

/**
 * Matches an encoded word: its charset (without a language), its encoding, and its text, which
 * should contain no `?` (RFC 2047).
 */
const WORD = /=\?([^?*\s]+)(?:\*[^?\s]*)?\?\s*([QB])\?((?:[^?]|(?<!=)\?(?!=))*)\?=/gi
/** A sequence of words. The white space between them does not belong to the text. */
const WORDS = new RegExp(`(?:${WORD.source})(?:\\s*${WORD.source})*`, 'gi')

/**
 * Rewrites a header as UTF-8. A sequence of encoded words becomes one word, because programs split
 * words within a character. It remains an encoded word, because a name may contain characters that
 * separate addresses.
 */
export function decodeHeader(header: Buffer, charset?: string): Buffer {
  const utf8 = isUtf8(header) ? header : toUtf8(header, charset).bytes
  if (!utf8.includes('=?')) return utf8
  return Buffer.from(
    utf8
      .toString()
      .replace(WORDS, (words) => `=?utf-8?B?${decodeWords(words).toString('base64')}?=`),
  )
}

function decodeWords(words: string): Buffer {
  const texts: { charset: string; bytes: Buffer[] }[] = []
  for (const [, charset = '', encoding, text = ''] of words.matchAll(WORD)) {
    const bytes = encoding?.toUpperCase() === 'B' ? Buffer.from(text, 'base64') : decodeQ(text)
    const last = texts.at(-1)
    if (last?.charset === charset.toLowerCase()) last.bytes.push(bytes)
    else texts.push({ charset: charset.toLowerCase(), bytes: [bytes] })
  }
  return Buffer.concat(
    texts.map(({ charset, bytes }) => toUtf8(Buffer.concat(bytes), charset).bytes),
  )
}

function decodeQ(text: string): Buffer {
  return decodeQuoted(
    Buffer.from(text.replace(/\s+/g, '_').replaceAll('_', ' ')).toString('latin1'),
  )
}

/** Decodes `=E9` to its byte. Leaves other texts with `=` as they are. */
export function decodeQuoted(text: string): Buffer {
  const bytes = text.replace(/=([\da-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(bytes, 'latin1')
}
