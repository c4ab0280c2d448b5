// Writes an import's answer. Its reader may not begin before it has sent everything, so a file
// stores what it has not read.
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { roomFor } from '../request/middleware.ts'
import { CallerGoneError } from '../request/problem-error.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Budget } from '../request/shares.ts'

const PIECE_BYTES = 256 * 1024

// The bound of unread bytes: a constant, plus UNREAD_PER_BYTE for each byte that the caller sent.
// An item of 2 bytes (`1,`) is answered by about 340 bytes, so a constant alone would cut callers
// that send many faulty items.
const UNREAD_BYTES = 64 * 1024 * 1024
const UNREAD_PER_BYTE = 16

/**
 * Writes to a response while its reader keeps up. Otherwise writes to a file, which is copied to
 * the response as the reader continues. The server cuts the connection of a reader that stops
 * reading for too long.
 * @param space bounds the files of all answers.
 */
export function createSpillingAnswer(
  { request, response, tenant }: Pick<RequestContext, 'request' | 'response' | 'tenant'>,
  space: Budget,
) {
  let file: FileHandle | undefined
  let written = 0
  let readTo = 0
  let taken = 0
  let pumping: Promise<void> | undefined

  function release(): void {
    space.release(tenant, taken)
    taken = written = readTo = 0
  }

  async function spill(bytes: Buffer): Promise<void> {
    file ??= await openUnnamedFile()
    // Everything was read, so empty the file: otherwise it would grow for ever.
    if (readTo === written && written > 0) {
      await file.truncate()
      release()
    }
    const isTooMuch =
      written - readTo + bytes.length > UNREAD_BYTES + UNREAD_PER_BYTE * request.socket.bytesRead
    if (isTooMuch || !space.take(tenant, bytes.length))
      throw new CallerGoneError('too much of the answer was not read')
    taken += bytes.length
    await file.appendFile(bytes)
    written += bytes.length
    pumping ??= pump(file)
  }

  async function pump(opened: FileHandle): Promise<void> {
    try {
      await roomFor(response)
      while (readTo < written && !response.destroyed) {
        const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, written - readTo))
        const { bytesRead } = await opened.read(piece, { position: readTo })
        if (bytesRead === 0) throw new Error('the file is shorter than what was written')
        readTo += bytesRead
        if (!response.write(piece.subarray(0, bytesRead))) await roomFor(response)
      }
    } catch {
      // The reader must see that its answer is incomplete.
      response.destroy()
    } finally {
      pumping = undefined
    }
  }

  return {
    /**
     * Writes without waiting for the reader.
     * @throws {CallerGoneError} if too much is unread. The connection is then cut.
     */
    async write(text: string): Promise<void> {
      if (response.destroyed) return
      if (pumping === undefined && !response.writableNeedDrain) return void response.write(text)
      try {
        await spill(Buffer.from(text))
      } catch (error) {
        response.destroy()
        throw error
      }
    },

    /**
     * Resolves when the file has been copied to the response, or the reader has disconnected.
     * Closes the file.
     */
    async end(): Promise<void> {
      while (pumping !== undefined) await pumping
      const opened = file
      file = undefined
      await opened?.close()
      release()
    },
  }
}

/**
 * Opens a file that no other user can read, and removes its name immediately, so that the file
 * disappears when the process ends.
 */
async function openUnnamedFile(): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-import-'))
  const file = await open(join(folder, 'unread'), 'ax+', 0o600)
  await rm(folder, { recursive: true })
  return file
}
