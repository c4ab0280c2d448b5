import type { ServerResponse } from 'node:http'
import { CallerGoneError } from '../read-body.ts'
import { openSpillFile, type SpillFile } from './spill-file.ts'

/** An answer whose reader may take its time, or begin only when it has sent everything. */
export interface SpillingAnswer {
  /**
   * Takes text for the answer; never waits for the reader.
   *
   * @throws {CallerGoneError} where more is unread than may be; the connection is broken off then.
   */
  write(text: string): Promise<void>
  /** Resolves when the reader has all of it, or is gone. */
  end(): Promise<void>
}

const PIECE_BYTES = 256 * 1024

/**
 * Writes to a response, and what its reader does not take in at once to a file, from which it follows as the reader reads. A reader that takes in
 * nothing for too long is cut by the server, as everywhere.
 *
 * @param maxBytes how much may lie in the file.
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
        if (!response.write(await opened.take(PIECE_BYTES))) await roomFor(response)
      }
    } catch {
      // A reader that does not get what is in the file must not take what it has for the whole.
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
