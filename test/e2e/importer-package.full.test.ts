import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { beforeSuite, runtimeEnv } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { installPacked, type UserProject } from './support/packed-package.ts'
import { slackExport } from './support/slack-export.ts'
import { someThread } from './support/some-thread.ts'

const execute = promisify(execFile)

/**
 * The threads that the external sort has to sort on disk, in several parts: about 10 MB together.
 */
const SORTED_THREADS = 300
const LONG_TEXT = ' It goes on.'.repeat(3_000)

/**
 * The Node of this process, and others on the PATH that `sluice-import` supports, by their
 * versions.
 */
async function nodesOfMachine(): Promise<Map<string, string>> {
  const folders = (runtimeEnv().PATH ?? '').split(delimiter)
  const nodes = new Map<string, string>()
  for (const node of [process.execPath, ...folders.map((folder) => join(folder, 'node'))]) {
    const version = await execute(node, ['--version']).then(
      ({ stdout }) => stdout.trim(),
      () => '',
    )
    const [major = 0, minor = 0] = version.slice(1).split('.').map(Number)
    if ((major > 20 || (major === 20 && minor >= 3)) && !nodes.has(version))
      nodes.set(version, node)
  }
  return nodes
}

describe('the packed importer', () => {
  let sluice: SharedSluice
  let project: UserProject
  let nodes: Map<string, string>
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    project = await installPacked(t, 'importer')
    nodes = await nodesOfMachine()
    await project.write('key', `${sluice.key}\n`)
  })

  /** Imports a file by each Node. Returns the counts of threads of each run that are not 0. */
  async function importByEach(file: string): Promise<object[]> {
    const counts: object[] = []
    for (const node of nodes.values()) {
      const args = [
        'node_modules/.bin/sluice-import',
        file,
        '--json',
        '--url',
        sluice.url,
        '--key-file',
        'key',
      ]
      const { stdout, stderr } = await execute(node, args, { cwd: project.folder, env: {} })
      assert.equal(stderr, '')
      const { threads } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
      counts.push(Object.fromEntries(Object.entries(threads).filter(([, count]) => count !== 0)))
    }
    return counts
  }

  /** The first run stores the threads, and the others change nothing. */
  const storedOnce = (threads: number) =>
    Array.from(nodes, (_, at) => (at === 0 ? { created: threads } : { unchanged: threads }))

  test('needs no other package, and has no code of Redis and MongoDB', async () => {
    assert.deepEqual(project.installed, ['@sluice/importer'])
    const folder = join(project.folder, 'node_modules/@sluice/importer')
    const files = (await readdir(folder)).toSorted()
    assert.deepEqual(files, ['LICENSES.txt', 'README.md', 'package.json', 'sluice-import.js'])
    for (const file of files)
      assert.doesNotMatch(
        await readFile(join(folder, file), 'utf8'),
        /['"](ioredis|bullmq|mongodb)\b/,
        file,
      )
  })

  test('stores threads of NDJSON', async () => {
    const threads = ['p-1', 'p-2'].map((externalId) => JSON.stringify(someThread({ externalId })))
    await project.write('threads.ndjson', threads.join('\n'))
    assert.deepEqual(await importByEach('threads.ndjson'), storedOnce(2))
  })

  test('sorts an export that is larger than the memory of the sort', async () => {
    await writeFile(join(project.folder, 'slack.zip'), slackExport(SORTED_THREADS, LONG_TEXT))
    assert.deepEqual(await importByEach('slack.zip'), storedOnce(SORTED_THREADS))
    const replied = await sluice.db
      .collection('sources')
      .countDocuments({ tenant: sluice.tenant, service: 'slack', quoteCount: 2 })
    assert.equal(replied, SORTED_THREADS)
  })

  test('runs by npx under its own name, and ends with the code of a file that is missing', async () => {
    const ran = (...args: string[]) =>
      execute('npx', ['--offline', 'sluice-import', ...args], { cwd: project.folder })
    assert.match((await ran('--help')).stdout, /^Usage: sluice-import \[options\] <files\.\.\.>/)
    const { version } = JSON.parse(
      await readFile(join(project.folder, 'node_modules/@sluice/importer/package.json'), 'utf8'),
    )
    assert.equal((await ran('--version')).stdout.trim(), version)
    await assert.rejects(ran('missing.zip', '--dry-run'), {
      code: 3,
      stdout: /missing\.zip cannot be read/,
    })
  })
})
