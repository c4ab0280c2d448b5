// Files of an export in memory, and what a format finds in them, for the tests of formats.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { detectFormats } from '../input/detect-format.ts'
import type {
  Format,
  FormatOptions,
  Found,
  InputFile,
  Noted,
  Piece,
  QuoteInput,
  Rejected,
} from './format.ts'
import { optionsOf } from './format-options.ts'
import { formats } from './formats.ts'
import { readBeginning } from './read/utf8-chunks.ts'

/**
 * Makes a file of a text, of bytes, or of another value as JSON. Its first chunks have three bytes,
 * because formats must read across the ends of chunks.
 */
export function inputFile(path: string, content: unknown): InputFile {
  const isBytes = typeof content === 'string' || Buffer.isBuffer(content)
  const bytes = Buffer.from(isBytes ? content : JSON.stringify(content, null, 2))
  const open = () => Readable.from(chunksOf(bytes))
  return { path, open }
}

function* chunksOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const length = at < 3_000 ? 3 : 65_536
    yield bytes.subarray(at, at + length)
    at += length
  }
}

/**
 * Makes a database of iMessage whose messages are of one chat and one moment, and returns its
 * bytes.
 */
export function chatDatabase(
  { DatabaseSync }: typeof import('node:sqlite'),
  messages: readonly { guid: string | null; text: string }[],
): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-formats-test-'))
  const database = new DatabaseSync(join(folder, 'chat.db'))
  database.exec(`
    CREATE TABLE message (guid TEXT, text TEXT, handle_id INTEGER, date INTEGER, is_from_me INTEGER);
    CREATE TABLE handle (id TEXT);
    CREATE TABLE chat (chat_identifier TEXT, display_name TEXT);
    CREATE TABLE chat_message_join (chat_id INTEGER, message_id INTEGER);
    CREATE TABLE attachment (transfer_name TEXT, filename TEXT, mime_type TEXT);
    CREATE TABLE message_attachment_join (message_id INTEGER, attachment_id INTEGER);
    INSERT INTO chat VALUES ('chat7', 'Ada');`)
  for (const [at, { guid, text }] of messages.entries()) {
    database.prepare('INSERT INTO message VALUES (?, ?, 0, 736248800, 1)').run(guid, text)
    database.prepare('INSERT INTO chat_message_join VALUES (1, ?)').run(at + 1)
  }
  database.close()
  const bytes = readFileSync(join(folder, 'chat.db'))
  rmSync(folder, { recursive: true })
  return bytes
}

export interface Contents {
  pieces: Piece[]
  rejected: Rejected[]
  notes: Noted[]
  /** How often each reason was noted, by `KIND: REASON`. */
  noted: Record<string, number>
  /** All quotes of a source, in its order. */
  quotes(externalId: string): QuoteInput[]
}

/** Everything that a format finds in its files. */
export async function readAll(
  format: Format,
  files: readonly InputFile[],
  options: Partial<FormatOptions> = {},
): Promise<Contents> {
  const found: Found[] = []
  const all = { map: new Map(), set: new Map(), ...options }
  for await (const list of format.read(files, optionsOf(format, all))) found.push(...list)
  const pieces = found.filter((each) => each.kind === 'piece')
  const notes = found.filter(
    (each) => each.kind !== 'piece' && each.kind !== 'rejected' && each.kind !== 'page',
  )
  return {
    pieces,
    rejected: found.filter((each) => each.kind === 'rejected'),
    notes,
    noted: countReasons(notes),
    quotes: (externalId) =>
      pieces
        .filter((piece) => piece.externalId === externalId)
        .sort((a, b) => Number(a.order > b.order) - Number(a.order < b.order))
        .flatMap((piece) => piece.quotes),
  }
}

function countReasons(notes: readonly Noted[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { kind, reason } of notes)
    counts[`${kind}: ${reason}`] = (counts[`${kind}: ${reason}`] ?? 0) + 1
  return counts
}

/** Whether a format recognises a file by its first 64 KiB. */
export async function recognises(format: Format, file: InputFile): Promise<boolean> {
  return format.recognises(file, await readBeginning(file))
}

/**
 * The files of one folder by the format that reads them, and those that no format reads under
 * `unread`.
 */
export async function filesByFormat(
  files: readonly InputFile[],
): Promise<Record<string, string[]>> {
  const { read, unread } = await detectFormats([{ name: 'x', files: [...files] }], formats)
  const groups = read.map(({ format, files: ofFormat }) => [
    format.name,
    ofFormat.map(({ path }) => path),
  ])
  return Object.fromEntries([
    ...groups,
    ...(unread.length > 0 ? [['unread', unread.map(({ name }) => name)]] : []),
  ])
}
