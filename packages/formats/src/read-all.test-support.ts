// Reads texts as files of a format, for the tests of formats.
import { Readable } from 'node:stream'
import type { Format, FormatOptions, Found, InputFile, Noted, Piece, Rejected } from './format.ts'
import { readBeginning } from './utf8-chunks.ts'

/** A file of the input, in chunks of three bytes at first, so that every rule also holds across chunks. */
export function inputFile(path: string, content: string | Buffer): InputFile {
  const bytes = Buffer.from(content)
  const open = async () => Readable.from(chunksOf(bytes))
  return { path, bytes: bytes.length, open }
}

function* chunksOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const length = at < 3_000 ? 3 : 65_536
    yield bytes.subarray(at, at + length)
    at += length
  }
}

export interface Contents {
  pieces: Piece[]
  rejected: Rejected[]
  notes: Noted[]
}

/** Everything that a format finds in its files. */
export async function readAll(
  format: Format,
  files: readonly InputFile[],
  options: Partial<FormatOptions> = {},
): Promise<Contents> {
  const found: Found[] = []
  for await (const list of format.read(files, { map: new Map(), set: new Map(), ...options })) found.push(...list)
  return {
    pieces: found.filter((each) => each.kind === 'piece'),
    rejected: found.filter((each) => each.kind === 'rejected'),
    notes: found.filter((each) => each.kind !== 'piece' && each.kind !== 'rejected'),
  }
}

/** Whether a format recognises files by their first 64 KiB. */
export function recognises(format: Format, files: readonly InputFile[]): Promise<boolean> {
  return format.recognises(files, readBeginning)
}
