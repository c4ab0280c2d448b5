// Reads the files of zip archives.
import { close, createReadStream, openSync, read } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { fromRandomAccessReaderPromise, RandomAccessReader } from 'yauzl'
import type { RawFile } from './read-counted.ts'

/** Opens an archive until `close` is called. Writes nothing to the disk. Memory: some hundred bytes a file. */
export async function openZip(path: string): Promise<{ files: RawFile[]; close: () => void }> {
  const { size } = await stat(path)
  const zip = await fromRandomAccessReaderPromise(new FileReader(path), size, { lazyEntries: true, autoClose: false })
  const files: RawFile[] = []
  for await (const entry of zip.eachEntry()) {
    if (entry.fileName.endsWith('/')) continue
    const open = () => {
      if (entry.isEncrypted()) throw new Error('is encrypted')
      return zip.openReadStreamPromise(entry)
    }
    files.push({ path: entry.fileName, bytes: entry.uncompressedSize, open })
  }
  return { files, close: () => zip.close() }
}

/** yauzl's own reader throws where nobody can catch it, if a stream is given up while its next read is queued. */
class FileReader extends RandomAccessReader {
  readonly #path: string
  readonly #fd: number

  constructor(path: string) {
    super()
    this.#path = path
    this.#fd = openSync(path, 'r')
  }

  // A stream that is given up closes its descriptor, so each stream has one of its own.
  override _readStreamForRange(start: number, end: number): Readable {
    return createReadStream(this.#path, { start, end: end - 1 })
  }

  override read(...[buffer, offset, length, position, callback]: Parameters<RandomAccessReader['read']>): void {
    read(this.#fd, buffer, offset, length, position, callback)
  }

  override close(callback: (error: Error | null) => void): void {
    close(this.#fd, callback)
  }
}
