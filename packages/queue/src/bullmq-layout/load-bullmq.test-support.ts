// Loads the BullMQ that our scripts are compared with.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll } from 'vitest'

/** Loads the installed BullMQ, or the version that the environment names (`BULLMQ=latest`), which npm installs into a temporary folder. */
export async function loadBullMQ(): Promise<typeof import('bullmq')> {
  const version = process.env.BULLMQ
  if (version === undefined) return import('bullmq')
  const folder = await mkdtemp(join(tmpdir(), 'bullmq-'))
  afterAll(() => rm(folder, { recursive: true, force: true }))
  await promisify(execFile)('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', `bullmq@${version}`])
  const manifest = JSON.parse(await readFile(join(folder, 'node_modules/bullmq/package.json'), 'utf8'))
  console.log(`Compared with BullMQ ${manifest.version}`)
  return createRequire(join(folder, 'main.js'))('bullmq')
}
