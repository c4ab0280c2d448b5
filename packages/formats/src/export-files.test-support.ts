// Files of an export in memory, and what a format finds in them, for the tests of formats.
import { Readable } from 'node:stream'
import type { Format, FormatOptions, Found, InputFile, Noted, Piece, QuoteInput, Rejected } from './format.ts'

/** Options as if the user gave none but these. */
function formatOptions(given: Partial<FormatOptions> = {}): FormatOptions {
  return { map: new Map(), set: new Map(), ...given }
}

/** Makes a file of text, of bytes, or of any other value as JSON. */
export function exportFile(path: string, content: unknown): InputFile {
  const bytes = Buffer.from(
    typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content, null, 2),
  )
  return { path, bytes: bytes.length, open: async () => Readable.from(inChunks(bytes)) }
}

/** Reads the first bytes of a file, as detection does. */
export async function beginning(file: InputFile): Promise<Buffer> {
  for await (const chunk of await file.open()) return Buffer.from(chunk)
  return Buffer.alloc(0)
}

/** What a format found, by kind. */
export interface Findings {
  pieces: Piece[]
  rejected: Rejected[]
  /** How often each reason was noted, after its kind. */
  noted: Record<string, number>
  /** All quotes of a source, in its order. */
  quotes(externalId: string): QuoteInput[]
}

export async function findIn(
  format: Format,
  files: readonly InputFile[],
  options: Partial<FormatOptions> = {},
): Promise<Findings> {
  const found: Found[] = []
  for await (const list of format.read(files, formatOptions(options))) found.push(...list)
  const pieces = found.filter((one) => one.kind === 'piece')
  return {
    pieces,
    rejected: found.filter((one) => one.kind === 'rejected'),
    noted: countReasons(found.filter((one) => one.kind !== 'piece' && one.kind !== 'rejected')),
    quotes: (externalId) =>
      pieces
        .filter((piece) => piece.externalId === externalId)
        .sort((a, b) => Number(a.order > b.order) - Number(a.order < b.order))
        .flatMap((piece) => piece.quotes),
  }
}

function countReasons(notes: readonly Noted[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const note of notes) counts[`${note.kind}: ${note.reason}`] = (counts[`${note.kind}: ${note.reason}`] ?? 0) + 1
  return counts
}

/** Chunks that end within lines and characters. */
function inChunks(bytes: Buffer): Buffer[] {
  const size = 1021
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
}
