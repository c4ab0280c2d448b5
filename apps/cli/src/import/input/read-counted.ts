// Opens files so that the bytes read are counted, what is compressed is inflated, and an error names its file.
import { Readable } from 'node:stream'
import { type Compression, inflate } from './inflate.ts'

/** How much was read, in bytes of files: those of a zip archive count inflated, other compressed ones as they are. `total` is 0 if that is not known. */
export interface BytesRead {
  total: number
  done: number
}

/** Where the bytes are counted, and what ends reading. */
export interface Reading {
  progress: BytesRead
  stopping: AbortSignal
}

/** The input can't be read. The message says why. */
export class InputError extends Error {
  override readonly name = 'InputError'

  static of(path: string, error: unknown): InputError {
    if (error instanceof InputError) return error
    return new InputError(`${path} cannot be read: ${reasonOf(error)}`, { cause: error })
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = Object(error)
  if (code === 'ENOENT') return 'it does not exist.'
  if (code === 'EACCES' || code === 'EPERM') return 'this user may not read it.'
  return typeof message === 'string' ? message : String(error)
}

interface Openable {
  path: string
  open: () => Promise<Readable> | Readable
}

/** Returns a function that opens the file. Opened several times, the file counts once. */
export function readCounted(
  { path, open }: Openable,
  { progress, stopping }: Reading,
  compression?: Compression,
): () => Promise<Readable> {
  let counted = 0
  async function* count(): AsyncGenerator<Buffer> {
    let here = 0
    for await (const chunk of await open()) {
      stopping.throwIfAborted()
      here += chunk.length
      progress.done += Math.max(0, here - counted)
      counted = Math.max(counted, here)
      yield chunk
    }
  }
  async function* read(): AsyncGenerator<Buffer> {
    try {
      yield* compression === undefined ? count() : inflate(bytesOf(count()), compression)
    } catch (error) {
      stopping.throwIfAborted()
      throw InputError.of(path, error)
    }
  }
  return async () => bytesOf(read())
}

/** A stream of bytes, while `Readable.from` makes a stream of objects by default. */
export function bytesOf(chunks: AsyncIterable<Buffer>): Readable {
  return Readable.from(chunks, { objectMode: false })
}
