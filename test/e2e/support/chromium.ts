import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Debian's package, and the names of others. */
const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

/** Finds the browser of the tests. */
export function findChromium(): string {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const found = folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(isExecutable)
  if (found === undefined)
    throw new Error(
      `Chromium is missing: none of ${NAMES.join(', ')} is on the PATH. On Debian: apt-get install chromium`,
    )
  return found
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
