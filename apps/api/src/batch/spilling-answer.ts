import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** An answer whose reader may take its time, or begin only when it has sent everything. */
export interface SpillingAnswer {
  /** Takes text for the answer; never waits for the reader. */
  write(text: string): Promise<void>
  /** Resolves when the reader has all of it, or is gone. */
  end(): Promise<void>
}

/** The reader left more unread than the spill file may hold. */
class SpillFullError extends Error {}

const PIECE_BYTES = 256 * 1024

/**
 * Writes to a response, and what its reader does not take in at once to a file, from which it follows as the reader reads.
 *
 * @param maxBytes how much may lie in the file.
 */
export function createSpillingAnswer(response: ServerResponse, maxBytes: number): SpillingAnswer {
  let file: Promise<{ handle: FileHandle; folder: string }> | undefined
  let taken = 0
  let written = 0
  let read = 0
  let pumping: Promise<void> | undefined

  async function openFile(): Promise<{ handle: FileHandle; folder: string }> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-batch-'))
    return { folder, handle: await open(join(folder, 'unread'), 'wx+', 0o600) }
  }

  async function spill(text: string): Promise<void> {
    file ??= openFile()
    const { handle } = await file
    const bytes = Buffer.from(text)
    if (taken - read + bytes.length > maxBytes)
      throw new SpillFullError(`more than ${maxBytes} bytes of the answer were not read`)
    const place = taken
    taken += bytes.length
    await handle.write(bytes, 0, bytes.length, place)
    written = place + bytes.length
    pumping ??= pump(handle)
  }

  async function pump(handle: FileHandle): Promise<void> {
    const piece = Buffer.alloc(PIECE_BYTES)
    await roomFor(response)
    while (read < written && !response.destroyed) {
      const { bytesRead } = await handle.read(piece, 0, Math.min(PIECE_BYTES, written - read), read)
      read += bytesRead
      if (!response.write(Buffer.from(piece.subarray(0, bytesRead)))) await roomFor(response)
    }
    if (read === taken) {
      // Nothing is unread: the file begins anew, so that it never grows by what was read.
      read = 0
      written = 0
      taken = 0
    }
    pumping = undefined
  }

  return {
    async write(text) {
      if (response.destroyed) return
      if (pumping !== undefined || response.writableNeedDrain) await spill(text)
      else response.write(text)
    },
    async end() {
      while (pumping !== undefined) await pumping
      if (file !== undefined) {
        const { handle, folder } = await file
        await handle.close()
        await rm(folder, { recursive: true, force: true })
      }
    },
  }
}

/** Resolves when the reader has taken in what was written, or is gone. */
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
