// Sorted runs of records in a temporary file: how they are written and read.
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** A record, sorted by key, then by order. Both are compared by their UTF-16 code units, and are well-formed. */
export interface SortRecord {
  key: string
  order: string
  text: string
}

export function compareRecords(a: SortRecord, b: SortRecord): number {
  return compareTexts(a.key, b.key) || compareTexts(a.order, b.order)
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** A range of the file. */
export interface Run {
  begin: number
  end: number
}

export type RecordLists = AsyncIterable<readonly SortRecord[]> | Iterable<readonly SortRecord[]>

export interface RunFile {
  write(records: RecordLists): Promise<Run>
  /** Reads a run in slices of so many bytes, or of one record if that is longer. */
  read(run: Run, sliceBytes: number): AsyncGenerator<readonly SortRecord[]>
  close(): Promise<void>
}

const WRITTEN_AT_ONCE = 1024 * 1024

/** Opens a file that no other user can read. It has no name once it is open, so it is gone with this process, however that ends. */
export async function openRunFile(parent: string, signal?: AbortSignal): Promise<RunFile> {
  const folder = await mkdtemp(join(parent, 'sluice-sort-'))
  const handle = await open(join(folder, 'runs'), 'wx+', 0o600)
  await rm(folder, { recursive: true })
  let end = 0

  async function append(slice: readonly Buffer[]): Promise<void> {
    signal?.throwIfAborted()
    const bytes = Buffer.concat(slice)
    await writeAll(handle, bytes, end)
    end += bytes.length
  }

  return {
    async write(records) {
      const begin = end
      let slice: Buffer[] = []
      let bytes = 0
      for await (const list of records) {
        for (const record of list) {
          const encoded = encodeRecord(record)
          slice.push(encoded)
          bytes += encoded.length
          if (bytes < WRITTEN_AT_ONCE) continue
          await append(slice)
          slice = []
          bytes = 0
        }
      }
      await append(slice)
      return { begin, end }
    },
    read: (run, sliceBytes) => readRun(handle, run, sliceBytes),
    close: () => handle.close(),
  }
}

async function writeAll(handle: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, position + at)
    at += bytesWritten
  }
}

async function* readRun(
  handle: FileHandle,
  { begin, end }: Run,
  sliceBytes: number,
): AsyncGenerator<readonly SortRecord[]> {
  let wanted = sliceBytes
  for (let at = begin; at < end; ) {
    const slice = await readAll(handle, at, Math.min(wanted, end - at))
    const { records, bytes, missing } = decodeRecords(slice)
    at += bytes
    wanted = records.length > 0 ? sliceBytes : missing
    if (records.length > 0) yield records
  }
}

async function readAll(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const slice = Buffer.allocUnsafe(length)
  for (let at = 0; at < length; ) {
    const { bytesRead } = await handle.read(slice, at, length - at, position + at)
    if (bytesRead === 0) throw new Error('The temporary file of the sort is shorter than it was.')
    at += bytesRead
  }
  return slice
}

/** A record begins with the lengths of its three texts in bytes. */
const HEADER_BYTES = 12

function encodeRecord({ key, order, text }: SortRecord): Buffer {
  const [keyBytes, orderBytes, textBytes] = [key, order, text].map((part) => Buffer.byteLength(part)) as Lengths
  const encoded = Buffer.allocUnsafe(HEADER_BYTES + keyBytes + orderBytes + textBytes)
  encoded.writeUInt32LE(keyBytes, 0)
  encoded.writeUInt32LE(orderBytes, 4)
  encoded.writeUInt32LE(textBytes, 8)
  encoded.write(key, HEADER_BYTES)
  encoded.write(order, HEADER_BYTES + keyBytes)
  encoded.write(text, HEADER_BYTES + keyBytes + orderBytes)
  return encoded
}

type Lengths = [number, number, number]

/** The whole records at the beginning of a slice, their bytes, and the length of the first record that is cut off. */
function decodeRecords(slice: Buffer): { records: SortRecord[]; bytes: number; missing: number } {
  const records: SortRecord[] = []
  let at = 0
  while (at + HEADER_BYTES <= slice.length) {
    const keyEnd = at + HEADER_BYTES + slice.readUInt32LE(at)
    const orderEnd = keyEnd + slice.readUInt32LE(at + 4)
    const textEnd = orderEnd + slice.readUInt32LE(at + 8)
    if (textEnd > slice.length) return { records, bytes: at, missing: textEnd - at }
    records.push({
      key: slice.toString('utf8', at + HEADER_BYTES, keyEnd),
      order: slice.toString('utf8', keyEnd, orderEnd),
      text: slice.toString('utf8', orderEnd, textEnd),
    })
    at = textEnd
  }
  return { records, bytes: at, missing: HEADER_BYTES }
}
