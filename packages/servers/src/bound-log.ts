// Keeps the log of a program within a bound: beyond it, the log becomes the one earlier log, and begins again.
import { copyFile, stat, truncate } from 'node:fs/promises'

/** A log and its earlier part may take so much each. */
const LOG_BYTES = 32 * 1024 * 1024
const LOOK_MS = 500

/**
 * Bounds a log until it is released. The program goes on writing to the same file, which it must have opened for appending, so the file is copied and
 * emptied. Lines that are written between the two are lost.
 */
export function boundLog(file: string, maxBytes = LOG_BYTES): { release(): void } {
  let isLooking = false
  const timer = setInterval(async () => {
    if (isLooking) return
    isLooking = true
    // A full disk, or a log that somebody removed, must not end the program. The next look tries again.
    await rotate(file, maxBytes).catch(() => {})
    isLooking = false
  }, LOOK_MS).unref()
  return { release: () => clearInterval(timer) }
}

async function rotate(file: string, maxBytes: number): Promise<void> {
  if ((await stat(file)).size <= maxBytes) return
  await copyFile(file, `${file}.1`).catch(() => {})
  await truncate(file, 0)
}
