// Checks out the release before this one, to run it beside this one.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestScope } from '@sluice/test-support'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Returns the folder of the commit that `previous.txt` names, with what its own lock file installs.
 */
export async function checkOutPrevious(t: TestScope): Promise<string> {
  const commit = (await readFile(new URL('previous.txt', import.meta.url), 'utf8')).trim()
  const folder = await mkdtemp(join(tmpdir(), 'sluice-previous-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await run('sh', ['-c', `git archive ${commit} | tar -x -C ${folder}`], { cwd: ROOT })
  await run('npx', ['-y', 'pnpm@12', 'install', '--prod', '--frozen-lockfile', '--loglevel=warn'], {
    cwd: folder,
  })
  return folder
}
