// An answer for a reader that may be slow, or may read only after it has sent everything. A file keeps the unread part.
import { mkdtemp, open, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CallerGoneError } from '../problems.ts'

export interface SpillingAnswer {
  /**
   * Adds text to the answer. Never waits for the reader.
   *
   * @throws {CallerGoneError} if too much is unread. The connection is cut then.
   */
  write(text: string): Promise<void>
  /** Resolves when the reader has all of it, or is gone. */
  end(): Promise<void>
}

const PIECE_BYTES = 256 * 1024

/**
 * Writes to a response while its reader keeps up, and else to a file, which is read as the reader goes on. The server cuts
 * a reader that reads nothing for too long, as it does everywhere.
 *
 * @param maxBytes how much the file may keep.
 */
export function createSpillingAnswer(response: ServerResponse, maxBytes: number): SpillingAnswer {
  let file: Promise<SpillFile> | undefined
  let pumping: Promise<void> | undefined

  async function spill(text: string): Promise<void> {
    file ??= openSpillFile()
    const opened = await file
    const bytes = Buffer.from(text)
    if (opened.unread() + bytes.length > maxBytes)
      throw new CallerGoneError(`more than ${maxBytes} bytes of the answer were not read`)
    await opened.append(bytes)
    pumping ??= pump(opened)
  }

  async function pump(opened: SpillFile): Promise<void> {
    try {
      await roomFor(response)
      while (opened.unread() > 0 && !response.destroyed) {
        if (!response.write(await opened.read(PIECE_BYTES))) await roomFor(response)
      }
    } catch {
      // The reader must see that its answer is incomplete.
      response.destroy()
    } finally {
      pumping = undefined
    }
  }

  return {
    async write(text) {
      if (response.destroyed) return
      if (pumping === undefined && !response.writableNeedDrain) return void response.write(text)
      try {
        await spill(text)
      } catch (error) {
        response.destroy()
        throw error
      }
    },
    async end() {
      while (pumping !== undefined) await pumping
      const opened = file
      file = undefined
      await (await opened?.catch(() => undefined))?.remove()
    },
  }
}

/** Resolves when the reader has read what was written, or is gone. */
async function roomFor(response: ServerResponse): Promise<void> {
  if (response.destroyed || !response.writableNeedDrain) return
  await new Promise<void>((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}

/** A temporary file that is read in the order in which it was written. */
interface SpillFile {
  /** The number of bytes that were appended and not yet read. */
  unread(): number
  append(bytes: Buffer): Promise<void>
  /** Reads the next bytes, at most this many. Throws if none are left. */
  read(bytes: number): Promise<Buffer>
  remove(): Promise<void>
}

/** Opens a file that no other user can read. */
async function openSpillFile(): Promise<SpillFile> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-import-'))
  const handle = await open(join(folder, 'unread'), 'wx+', 0o600)
  let readTo = 0
  let written = 0
  return {
    unread: () => written - readTo,
    async append(bytes) {
      // Once everything is read, the file starts again at its beginning, so that its size is bounded by the unread part.
      if (readTo === written) readTo = written = 0
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, written)
        at += bytesWritten
        written += bytesWritten
      }
    },
    async read(bytes) {
      const piece = Buffer.allocUnsafe(Math.min(bytes, written - readTo))
      const { bytesRead } = await handle.read(piece, 0, piece.length, readTo)
      if (bytesRead === 0) throw new Error('nothing is left to read in the file')
      readTo += bytesRead
      return piece.subarray(0, bytesRead)
    },
    async remove() {
      await handle.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
