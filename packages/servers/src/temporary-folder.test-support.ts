import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'vitest'

/** A folder that is removed after the test. */
export async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-servers-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}
