// The git revision of the code, read from the files of git: neither a server nor an image needs the
// command.
import { readFileSync } from 'node:fs'

/** Characters of a revision that distinguish it from all others. */
const SHOWN = 10

/**
 * Returns the revision of a clone, '' if it is not known, as in a download or a worktree. @param
 * git its folder `.git/`.
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

/** The revision of Sluice that runs. Changes that are not committed do not show. */
export const REVISION = readRevision(new URL('../../../.git/', import.meta.url))
