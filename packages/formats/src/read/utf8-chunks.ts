// Reads a file of any Unicode encoding as chunks of UTF-8.
import type { InputFile } from '../format.ts'

const UTF8_MARK = Buffer.from([0xef, 0xbb, 0xbf])
const UTF16LE_MARK = Buffer.from([0xff, 0xfe])
const UTF16BE_MARK = Buffer.from([0xfe, 0xff])

/**
 * Reads a file without its byte order mark. UTF-16 with such a mark is converted: Google Play, PowerShell and Excel
 * write it. All other bytes count as UTF-8 and are not checked.
 */
export async function* utf8Chunks(file: InputFile): AsyncGenerator<Buffer> {
  const stream = await file.open()
  let convert: ((chunk: Buffer) => Buffer) | undefined
  let beginning = Buffer.alloc(0)
  for await (const chunk of stream) {
    if (convert) {
      yield convert(chunk)
      continue
    }
    beginning = Buffer.concat([beginning, chunk])
    if (beginning.length < UTF8_MARK.length) continue
    convert = converterFor(beginning)
    yield convert(withoutMark(beginning))
  }
  if (!convert && beginning.length > 0) yield converterFor(beginning)(withoutMark(beginning))
}

/** What formats see of a file before they read it. */
const BEGINNING_BYTES = 64 * 1024

/** Reads a file's first 64 KiB. The file must be one that can be opened again. */
export async function readBeginning(file: InputFile): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of await file.open()) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= BEGINNING_BYTES) break
  }
  return Buffer.concat(chunks).subarray(0, BEGINNING_BYTES)
}

/** The text of a file's beginning, whose last character may be incomplete. */
export function decodeBeginning(bytes: Buffer): string {
  return converterFor(bytes)(withoutMark(bytes)).toString('utf8')
}

function converterFor(beginning: Buffer): (chunk: Buffer) => Buffer {
  const encoding = encodingOf(beginning)
  if (!encoding) return (chunk) => chunk
  const decoder = new TextDecoder(encoding)
  return (chunk) => Buffer.from(decoder.decode(chunk, { stream: true }))
}

function encodingOf(beginning: Buffer): string | undefined {
  if (startsWith(beginning, UTF16LE_MARK)) return 'utf-16le'
  return startsWith(beginning, UTF16BE_MARK) ? 'utf-16be' : undefined
}

function withoutMark(beginning: Buffer): Buffer {
  const mark = [UTF8_MARK, UTF16LE_MARK, UTF16BE_MARK].find((each) => startsWith(beginning, each))
  return beginning.subarray(mark?.length ?? 0)
}

function startsWith(bytes: Buffer, mark: Buffer): boolean {
  return bytes.subarray(0, mark.length).equals(mark)
}
