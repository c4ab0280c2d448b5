// Opens files. Counts the bytes that are read, inflates what is compressed, and names the file in
// errors.
import { close, open, read } from 'node:fs'
import { addAbortSignal, pipeline, type Readable } from 'node:stream'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { inflateMembers } from '@sluice/process/inflate-members'
import { UserError } from '@sluice/terminal'
import { UnreadableFile } from '../formats/format.ts'

/** How much of something is done. `total` is 0 if unknown. */
export interface Done {
  total: number
  done: number
}

/** Where the bytes are counted, and what ends reading. */
export interface Reading {
  /** In bytes. Files in zip archives count inflated, other compressed files count compressed. */
  progress: Done
  stopping: AbortSignal
  /** The encoding of the files, if it is no Unicode. */
  encoding?: string | undefined
}

/** Dumps such as Reddit's have a window of 2^31 bytes. Inflating them needs as much memory. */
const WINDOW_LOG_MAX = 31

/** Inflated in pieces of 16 KiB, as Node does by default, a file takes half as long again. */
const INFLATED_BYTES = 64 * 1024

type Compression = (typeof COMPRESSIONS)[number]

/** A file is recognised by its name, and standard input, which has none, by its first bytes. */
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

/** The error of a file that can't be read, which says why. */
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

/** A file on the disk or of an archive, which may still be compressed with gzip or Zstandard. */
export interface RawFile {
  path: string
  bytes?: number
  /** The CRC-32 of its bytes, if an archive has it. */
  checksum?: number
  /** Its path on the disk, if it lies there as it is. */
  onDisk?: string
  open: () => Promise<Readable> | Readable
}

/** Node before 20.15 has no checksum, and finds no damage. */
const crc32 = 'crc32' in zlib ? zlib.crc32 : (_: Buffer, crc: number) => crc

/** Returns a function that opens the file. However often it is called, each byte counts once. */
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
    // The signal ends the wait for the next chunk, which may never come from a pipe or a disk on
    // the network.
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
      // An error of either stream ends both.
      const bytes = compression === undefined ? count() : compression.inflate(count())
      yield* encoding === undefined ? bytes : toUtf8(bytes, encoding)
    } catch (error) {
      stopping.throwIfAborted()
      throw unreadable(path, error)
    }
  }
  return readAll
}

/**
 * Reads the beginning of a file on the disk, in half the time that a stream takes. Folders may have
 * a million mails.
 */
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

/** Throws a TypeError at bytes that mean nothing in the encoding. */
async function* toUtf8(chunks: AsyncIterable<Buffer>, encoding: string): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  for await (const chunk of chunks) yield Buffer.from(decoder.decode(chunk, { stream: true }))
  yield Buffer.from(decoder.decode())
}
