// An answer whose reader may take its time, or begin only after it has sent everything: a file keeps what is unread.
import { mkdtemp, open, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Budget } from '../body/overload.ts'
import { CallerGoneError } from '../request/problem-error.ts'
import type { RequestContext } from '../request/request-context.ts'

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

/** How much of an answer may be unread, in bytes, and how much more for each byte that its request sent. Two bytes of a faulty item get some 340 of problem. */
const UNREAD_BYTES = 64 * 1024 * 1024
const UNREAD_PER_BYTE = 16

/**
 * Writes to a response while its reader keeps up, and else to a file, which is read as the reader goes on. The server cuts
 * a reader that reads nothing for too long, as it does everywhere.
 *
 * @param space what the files of all answers may take.
 */
export function createSpillingAnswer(
  { request, response, tenant }: Pick<RequestContext, 'request' | 'response' | 'tenant'>,
  space: Budget,
): SpillingAnswer {
  let file: Promise<SpillFile> | undefined
  let pumping: Promise<void> | undefined

  async function spill(text: string): Promise<void> {
    file ??= openSpillFile(
      (bytes) => space.take(tenant, bytes),
      (bytes) => space.release(tenant, bytes),
    )
    const opened = await file
    const bytes = Buffer.from(text)
    const isTooMuch = opened.unread() + bytes.length > UNREAD_BYTES + UNREAD_PER_BYTE * request.socket.bytesRead
    if (isTooMuch || !(await opened.append(bytes))) throw new CallerGoneError('too much of the answer was not read')
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
      await (await opened?.catch(() => undefined))?.close()
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
async function openSpillFile(
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
