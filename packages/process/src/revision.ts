// Reads the git revision of the code from git's files, because servers and images do not have the
// command `git`.
import { readFileSync } from 'node:fs'

/** This number of characters distinguishes a revision from all others. */
const SHOWN = 10

/**
 * Returns the revision of a clone. Returns '' if it is unknown, as in a download or a worktree.
 * @param git the clone's folder `.git/`.
 */
export function readRevision(git: URL): string {
  const read = (path: string) => {
    try {
      return readFileSync(new URL(path, git), 'utf8').trim()
    } catch {
      return ''
    }
  }
  const head = read('HEAD')
  const ref = head.startsWith('ref: ') ? head.slice('ref: '.length) : undefined
  const packed = () =>
    read('packed-refs')
      .split('\n')
      .find((line) => line.endsWith(` ${ref}`))
  const revision = ref === undefined ? head : read(ref) || packed() || ''
  return /^[0-9a-f]{40,}/.test(revision) ? revision.slice(0, SHOWN) : ''
}

/** The revision of the Sluice that runs, without changes that are not committed. */
export const REVISION = readRevision(new URL('../../../.git/', import.meta.url))
