import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A temporary file from which is read what was appended to it, in its order. */
export interface SpillFile {
  /** How many bytes were appended and not taken. */
  unread(): number
  append(bytes: Buffer): Promise<void>
  /** The next bytes, at most so many; throws where there are none. */
  take(bytes: number): Promise<Buffer>
  remove(): Promise<void>
}

/** Opens one that nobody else may read. */
export async function openSpillFile(): Promise<SpillFile> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-batch-'))
  const handle = await open(join(folder, 'unread'), 'wx+', 0o600)
  let taken = 0
  let written = 0
  return {
    unread: () => written - taken,
    async append(bytes) {
      // Where nothing is unread the file begins anew, so that it never grows by what was read.
      if (taken === written) taken = written = 0
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, written)
        at += bytesWritten
        written += bytesWritten
      }
    },
    async take(bytes) {
      const piece = Buffer.allocUnsafe(Math.min(bytes, written - taken))
      const { bytesRead } = await handle.read(piece, 0, piece.length, taken)
      if (bytesRead === 0) throw new Error('nothing is left to read in the file')
      taken += bytesRead
      return piece.subarray(0, bytesRead)
    },
    async remove() {
      await handle.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
