// Decodes 8-bit text and encoded words in the header of a mail.
import { isUtf8 } from 'node:buffer'
import { toUtf8 } from './charsets.ts'

/**
 * An encoded word: its charset without a language, its encoding, and its text, which should have no
 * `?` (RFC 2047).
 */
const WORD = /=\?([^?*\s]+)(?:\*[^?\s]*)?\?\s*([QB])\?((?:[^?]|(?<!=)\?(?!=))*)\?=/gi
/** Matches encoded words that follow each other. The white space between them is no text. */
const WORDS = new RegExp(`(?:${WORD.source})(?:\\s*${WORD.source})*`, 'gi')

/**
 * Rewrites a header as UTF-8, in which words that follow each other are one word of UTF-8. Programs
 * split words within a character. A word stays a word, because a name may have signs that separate
 * addresses.
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

/** Decodes `=E9` to the byte that it means. A sign that means no byte stays. */
export function decodeQuoted(text: string): Buffer {
  const bytes = text.replace(/=([\da-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(bytes, 'latin1')
}
