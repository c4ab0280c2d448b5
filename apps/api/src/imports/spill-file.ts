// A temporary file that is read in the order in which it was written.
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SpillFile {
  /** The number of bytes that were appended and not yet read. */
  unread(): number
  /** Returns false if no space is left for the bytes. */
  append(bytes: Buffer): Promise<boolean>
  /** Reads the next bytes, at most this many. Throws if none are left. */
  read(bytes: number): Promise<Buffer>
  close(): Promise<void>
}

/**
 * Opens a file that no other user can read. It has no name any more once it is open, so it is gone with its process, however
 * that ends.
 *
 * @param takeSpace is asked for the bytes by which the file grows. What it gave is released when the file shrinks or closes.
 */
export async function openSpillFile(
  takeSpace: (bytes: number) => boolean,
  releaseSpace: (bytes: number) => void,
): Promise<SpillFile> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-import-'))
  const handle = await open(join(folder, 'unread'), 'wx+', 0o600)
  await rm(folder, { recursive: true })
  let readTo = 0
  let written = 0
  let taken = 0
  const release = () => {
    releaseSpace(taken)
    readTo = written = taken = 0
  }
  return {
    unread: () => written - readTo,
    async append(bytes) {
      // If nothing is unread, the file starts again, so that it does not grow by what was read.
      if (readTo === written && written > 0) {
        await handle.truncate()
        release()
      }
      if (!takeSpace(bytes.length)) return false
      taken += bytes.length
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, written)
        at += bytesWritten
        written += bytesWritten
      }
      return true
    },
    async read(bytes) {
      const piece = Buffer.allocUnsafe(Math.min(bytes, written - readTo))
      const { bytesRead } = await handle.read(piece, 0, piece.length, readTo)
      if (bytesRead === 0) throw new Error('nothing is left to read in the file')
      readTo += bytesRead
      return piece.subarray(0, bytesRead)
    },
    async close() {
      await handle.close()
      release()
    },
  }
}
