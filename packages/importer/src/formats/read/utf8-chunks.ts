// Reads a file in any Unicode encoding as chunks of UTF-8.
import type { InputFile } from '../format.ts'

const MARKS = [
  { mark: Buffer.from([0xef, 0xbb, 0xbf]) },
  { mark: Buffer.from([0xff, 0xfe]), encoding: 'utf-16le' },
  { mark: Buffer.from([0xfe, 0xff]), encoding: 'utf-16be' },
]
const LONGEST_MARK = 3

type Convert = (chunk: Buffer) => Buffer

/** Reads a file without its byte order mark. Without one, takes it for UTF-8, unchecked. */
export async function* utf8Chunks(file: InputFile): AsyncGenerator<Buffer> {
  let convert: Convert | undefined
  let beginning = Buffer.alloc(0)
  for await (const chunk of file.open()) {
    if (convert) {
      yield convert(chunk)
      continue
    }
    beginning = Buffer.concat([beginning, chunk])
    if (beginning.length < LONGEST_MARK) continue
    const found = convertBeginning(beginning)
    convert = found.convert
    yield found.converted
  }
  if (!convert && beginning.length > 0) yield convertBeginning(beginning).converted
}

/** Formats recognise a file by at most this number of bytes. */
export const BEGINNING_BYTES = 64 * 1024

/** Reads the first 64 KiB of a file. It must be possible to open the file again. */
export async function readBeginning(file: InputFile): Promise<Buffer> {
  if (file.beginning !== undefined) return await file.beginning(BEGINNING_BYTES)
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of file.open()) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= BEGINNING_BYTES) break
  }
  return Buffer.concat(chunks).subarray(0, BEGINNING_BYTES)
}

/** Decodes the beginning of a file. Its last character may be incomplete. */
export function decodeBeginning(bytes: Buffer): string {
  return convertBeginning(bytes).converted.toString('utf8')
}

/** Converts a file's beginning without its mark. Returns how to convert the rest. */
function convertBeginning(beginning: Buffer): { converted: Buffer; convert: Convert } {
  const { mark, encoding } =
    MARKS.find(({ mark }) => beginning.subarray(0, mark.length).equals(mark)) ?? {}
  const decoder = encoding === undefined ? undefined : new TextDecoder(encoding)
  const convert: Convert = (chunk) =>
    decoder ? Buffer.from(decoder.decode(chunk, { stream: true })) : chunk
  return { converted: convert(beginning.subarray(mark?.length ?? 0)), convert }
}
