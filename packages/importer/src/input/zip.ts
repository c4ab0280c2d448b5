// Reads the files of zip archives.
import { isUtf8 } from 'node:buffer'
import { close, createReadStream, openSync, read } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import {
  type Entry,
  fromRandomAccessReaderPromise,
  getFileNameLowLevel,
  RandomAccessReader,
} from 'yauzl'
import type { RawFile } from './read-counted.ts'

/** Opens an archive until `close` is called. Each file in it needs a few hundred bytes of memory. */
export async function openZip(path: string): Promise<{ files: RawFile[]; close: () => void }> {
  const { size } = await stat(path)
  // A wrong size would make the whole archive unreadable, and checksums show which entry is
  // damaged.
  const options = {
    lazyEntries: true,
    autoClose: false,
    decodeStrings: false,
    validateEntrySizes: false,
  }
  const zip = await fromRandomAccessReaderPromise(new FileReader(path), size, options)
  const files: RawFile[] = []
  for await (const entry of zip.eachEntry()) {
    const name = nameOf(entry)
    if (name === '' || name.endsWith('/')) continue
    const open = () => {
      if (entry.isEncrypted()) throw new Error('is encrypted')
      return zip.openReadStreamPromise(entry)
    }
    files.push({ path: name, bytes: entry.uncompressedSize, checksum: entry.crc32, open })
  }
  return { files, close: () => zip.close() }
}

/** This flag says that a name is UTF-8. Many programs write UTF-8 without it. */
const UTF8_FLAG = 0x800

/**
 * Removes a drive, `.`, `..` and empty parts. (A hostile name does no harm, because no file is
 * written under it.)
 */
function nameOf({ fileNameRaw, generalPurposeBitFlag, extraFields }: Entry): string {
  const flags = isUtf8(fileNameRaw) ? generalPurposeBitFlag | UTF8_FLAG : generalPurposeBitFlag
  const name = getFileNameLowLevel(flags, fileNameRaw, extraFields, false)
  return name.replace(/^[a-z]:/i, '').replaceAll(/(?<=^|\/)(?:\.{0,2}\/)+/g, '')
}

/**
 * Reads a file for yauzl. If a stream is abandoned while its next read is queued, yauzl's own
 * reader throws an error that nobody can catch.
 */
class FileReader extends RandomAccessReader {
  readonly #path: string
  readonly #fd: number

  constructor(path: string) {
    super()
    this.#path = path
    this.#fd = openSync(path, 'r')
  }

  // An abandoned stream closes its descriptor, so each stream has its own.
  override _readStreamForRange(start: number, end: number): Readable {
    return createReadStream(this.#path, { start, end: end - 1 })
  }

  override read(
    ...[buffer, offset, length, position, callback]: Parameters<RandomAccessReader['read']>
  ): void {
    read(this.#fd, buffer, offset, length, position, callback)
  }

  override close(callback: (error: Error | null) => void): void {
    close(this.#fd, callback)
  }
}
