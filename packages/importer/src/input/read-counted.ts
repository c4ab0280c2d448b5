// Opens files. Counts the bytes that are read, inflates compressed files, and names the file in
// errors.
import { close, open, read } from 'node:fs'
import { addAbortSignal, pipeline, type Readable } from 'node:stream'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { inflateMembers } from '@sluice/process/inflate-members'
import { UserError } from '@sluice/terminal'
import { UnreadableFile } from '../formats/format.ts'

/** How much of something is done. `total` is 0 if it is unknown. */
export interface Done {
  total: number
  done: number
}

/** Where to count bytes, and what ends reading. */
export interface Reading {
  /** In bytes. Files in zip archives are counted inflated, other compressed files compressed. */
  progress: Done
  stopping: AbortSignal
  /** The encoding of the files, if it is not Unicode. */
  encoding?: string | undefined
}

/** Dumps such as Reddit's have a window of 2^31 bytes, so inflating them needs as much memory. */
const WINDOW_LOG_MAX = 31

/** Node's default is 16 KiB, with which inflating a file takes 1.5 times as long. */
const INFLATED_BYTES = 64 * 1024

type Compression = (typeof COMPRESSIONS)[number]

/** Compressed files are recognised by their names or, on standard input, by their first bytes. */
export const COMPRESSIONS = [
  {
    extension: /\.gz$/i,
    magic: Buffer.from([0x1f, 0x8b]),
    inflate: (bytes: AsyncGenerator<Buffer>) => pipeline(bytes, zlib.createGunzip(), () => {}),
  },
  {
    extension: /\.zst$/i,
    magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]),
    async *inflate(bytes: AsyncGenerator<Buffer>) {
      const params = { [zlib.constants.ZSTD_d_windowLogMax]: WINDOW_LOG_MAX }
      if (!('createZstdDecompress' in zlib))
        throw new Error(
          'this Node inflates no Zstandard. Use Node 22.15 or later, or inflate the file first (unzstd).',
        )
      try {
        yield* inflateMembers(bytes, () =>
          zlib.createZstdDecompress({ params, chunkSize: INFLATED_BYTES }),
        )
      } finally {
        await bytes.return(undefined)
      }
    },
  },
]

/** Makes the error of a file that can't be read, with the reason. */
export function unreadable(path: string, error: unknown): UserError {
  if (error instanceof UserError) return error
  return new UnreadableFile(path, reasonOf(error), error)
}

function reasonOf(error: unknown): string {
  const { code, message } = Object(error)
  if (code === 'ENOENT') return 'it does not exist.'
  if (code === 'EACCES' || code === 'EPERM') return 'this user may not read it.'
  return typeof message === 'string' ? message : String(error)
}

/** A file on the disk or in an archive, perhaps also compressed with gzip or Zstandard. */
export interface RawFile {
  path: string
  bytes?: number
  /** The CRC-32 of the file's bytes, if it is in an archive that has the CRC. */
  checksum?: number
  /** The file's path on the disk, if it is there uncompressed. */
  onDisk?: string
  open: () => Promise<Readable> | Readable
}

/** Node before 20.15 has no CRC-32, so it does not find damage. */
const crc32 = 'crc32' in zlib ? zlib.crc32 : (_: Buffer, crc: number) => crc

/** Returns a function that opens the file, and counts each byte once if called several times. */
export function readCounted(
  { path, checksum, open: openRaw }: RawFile,
  reading: Reading,
  compression?: Compression,
) {
  const { progress, stopping, encoding } = reading
  let counted = 0
  async function* count(): AsyncGenerator<Buffer> {
    let here = 0
    let crc = 0
    // The signal ends the wait for the next chunk, which may never arrive from a pipe or a network
    // disk.
    for await (const chunk of addAbortSignal(stopping, await openRaw())) {
      here += chunk.length
      progress.done += Math.max(0, here - counted)
      counted = Math.max(counted, here)
      if (checksum !== undefined) crc = crc32(chunk, crc)
      yield chunk
    }
    if (crc !== (checksum ?? crc))
      throw new Error('it is damaged, so texts may be wrong: its checksum differs.')
  }
  async function* readAll(): AsyncGenerator<Buffer> {
    try {
      // An error of one stream ends both.
      const bytes = compression === undefined ? count() : compression.inflate(count())
      yield* encoding === undefined ? bytes : toUtf8(bytes, encoding)
    } catch (error) {
      stopping.throwIfAborted()
      throw unreadable(path, error)
    }
  }
  return readAll
}

/** Reads a file's beginning in half the time of a stream: folders may have a million mails. */
export async function readDiskBeginning(
  { path, onDisk = '', bytes: all }: RawFile,
  most: number,
  { stopping }: Reading,
): Promise<Buffer> {
  stopping.throwIfAborted()
  try {
    const file = await openFile(onDisk, 'r')
    try {
      const { bytesRead, buffer } = await readFile(file, {
        buffer: Buffer.allocUnsafe(Math.min(most, all ?? most)),
      })
      return buffer.subarray(0, bytesRead)
    } finally {
      close(file)
    }
  } catch (error) {
    throw unreadable(path, error)
  }
}

const openFile = promisify(open)
const readFile = promisify(read)

/** Converts bytes to UTF-8. Throws a TypeError at bytes that are invalid in the encoding. */
async function* toUtf8(chunks: AsyncIterable<Buffer>, encoding: string): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  for await (const chunk of chunks) yield Buffer.from(decoder.decode(chunk, { stream: true }))
  yield Buffer.from(decoder.decode())
}
