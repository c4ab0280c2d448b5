// Lists the files of a zip archive and opens them as streams. Nothing of an archive is written to the disk, so its paths can do no harm.
import type { Readable } from 'node:stream'
import { type Entry, openPromise } from 'yauzl'

/** A file in an archive. */
export interface ZippedFile {
  path: string
  /** Its size outside of the archive. */
  bytes: number
  open(): Promise<Readable>
}

export interface ZipArchive {
  files: ZippedFile[]
  close(): void
}

/** Opens an archive, of the zip64 form too. Memory: some hundred bytes for each file of its list. */
export async function openZip(path: string): Promise<ZipArchive> {
  const zip = await openPromise(path, { lazyEntries: true, autoClose: false })
  const files: ZippedFile[] = []
  try {
    for await (const entry of zip.eachEntry()) {
      if (!entry.fileName.endsWith('/')) files.push(zippedFile(entry, () => zip.openReadStreamPromise(entry)))
    }
  } catch (error) {
    zip.close()
    throw error
  }
  return { files, close: () => zip.close() }
}

function zippedFile(entry: Entry, open: () => Promise<Readable>): ZippedFile {
  return {
    path: entry.fileName,
    bytes: entry.uncompressedSize,
    open: () => {
      if (entry.isEncrypted()) throw new Error('is encrypted')
      return open()
    },
  }
}
