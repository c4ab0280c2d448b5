import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { createZstdDecompress, gunzipSync } from 'node:zlib'
import { runCommand } from '@sluice/cli/test-support'
import { createKey } from '@sluice/credentials/keys'
import { runImport } from '@sluice/importer/test-support'
import { inflateMembers } from '@sluice/process/inflate-members'
import { beforeSuite, runtimeEnv } from '@sluice/test-support'
import { describe, type TestContext, test } from 'vitest'
import { type SharedSluice, shareSluice } from '../support/shared-sluice.ts'
import { until } from '../support/until.ts'
import { createCaller } from './support/caller.ts'
import { storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

const MAIN = fileURLToPath(import.meta.resolve('../../apps/cli/src/main.ts'))
const THREADS = 30

async function someFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-export-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/**
 * Passes requests on. It answers no page of an export from the `held`-th one on, and breaks off
 * within the `cut`-th one.
 */
async function openProxy(
  t: TestContext,
  url: string,
  { held = Number.POSITIVE_INFINITY, cut = 0 },
) {
  const state = { pages: 0, held }
  const proxy = createServer((incoming, outgoing) => {
    const { method, headers, url: path = '' } = incoming
    if (path.startsWith('/sources:export') && ++state.pages >= state.held) return
    const passed = request(new URL(path, url), { method, headers, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers)
      if (state.pages !== cut) answer.pipe(outgoing)
      else answer.once('data', (chunk) => outgoing.write(chunk, () => outgoing.destroy()))
    })
    incoming.pipe(passed.on('error', () => outgoing.destroy()))
    // A caller that was killed leaves its answer half read.
    outgoing.once('close', () => passed.destroy())
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  t.onTestFinished(() => void proxy.close().closeAllConnections())
  return { url: `http://127.0.0.1:${Object(proxy.address()).port}`, state }
}

describe('sluice export', () => {
  let sluice: SharedSluice
  /** A key whose quota is used up, so that a page has two or three threads. */
  let key: string
  beforeSuite(async (t) => {
    sluice = await shareSluice(t)
    const { tenant } = sluice
    const limits = { quotesPerSecond: 1, burstQuotes: 1 }
    key = (await createKey(sluice.db, { tenant, name: 'used up', limits })).key
    const quotes = [{ externalId: 'q', text: 'é🎹'.repeat(10_000) }, { text: 'short\u009b2J' }]
    const threads = Array.from({ length: THREADS }, (_, at) =>
      someThread({ externalId: `t${at}`, createdAt: '2024-05-01', quotes }),
    )
    const caller = createCaller(sluice)
    for (const thread of threads) storedIn(await caller.post(thread))
    await createCaller({ url: sluice.url, key }).post(
      someThread({ service: 'email', createdAt: '2024-05-01' }),
    )
  })
  const linesIn = (ndjson: string | Buffer) => ndjson.toString().split('\n').slice(0, -1)
  const run = (args: readonly string[], { url, apiKey = sluice.key } = { url: sluice.url }) =>
    runCommand({ folder: '/', env: { SLUICE_API_KEY: apiKey } }, 'export', [...args, '--url', url])

  function start(url: string, ...args: string[]) {
    const env = { ...runtimeEnv(), SLUICE_API_KEY: key }
    const child = spawn(process.execPath, [MAIN, 'export', '--url', url, ...args], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const output = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    const ended = output.then(([stdout, stderr, [code, signal]]) => {
      return { stdout, stderr, code, signal }
    })
    return { child, ended }
  }

  test('a file is plain or compressed by its name, and `sluice import` finds everything unchanged', async (t) => {
    const folder = await someFolder(t)
    const contents: string[] = []
    // Each page of an export is a frame of its own, and Node's own function reads the first only.
    async function* framesOf(data: Buffer) {
      yield data
    }
    for (const [name, inflate] of [
      ['a.ndjson', (data: Buffer) => data.toString()],
      ['b.ndjson.gz', (data: Buffer) => gunzipSync(data).toString()],
      [
        'c.zst',
        (data: Buffer) => text(inflateMembers(framesOf(data), () => createZstdDecompress())),
      ],
    ] as const) {
      const file = join(folder, name)
      await writeFile(file, 'an older export')
      const { stdout, stderr, code } = await run([file, '--quiet'], {
        url: sluice.url,
        apiKey: key,
      })
      assert.deepEqual([stderr, code], ['', 0])
      assert.match(stdout, /^Done: 31 lines \(a large thread has several\), \d\.\d MiB in .*: \//)
      const lines = linesIn(await inflate(await readFile(file)))
      contents.push(lines.sort().join('\n'))
      const deps = { folder: '/', env: { SLUICE_API_KEY: sluice.key } }
      const imported = await runImport(deps, ['--url', sluice.url, file])
      assert.match(imported.stdout, /0 threads created, 0 updated, 31 unchanged, 0 rejected/)
    }
    assert.equal(new Set(contents).size, 1)
    assert.deepEqual(await readdir(folder), ['a.ndjson', 'b.ndjson.gz', 'c.zst'])
  })

  test('an export replaces no folder and no device', async (t) => {
    const { stderr, code } = await run([await someFolder(t)])
    assert.deepEqual(
      [stderr.replace(/\S*\/\S*/, '…'), code],
      ['error: … is no file. Name a file, or - for standard output.\n', 1],
    )
  })

  test('an empty export is a valid file, too', async (t) => {
    const file = join(await someFolder(t), 'empty.gz')
    assert.equal((await run([file, '--speaker', 'Nobody'])).code, 0)
    assert.equal(gunzipSync(await readFile(file)).toString(), '')
  })

  for (const name of ['export.ndjson', 'export.ndjson.gz'])
    test(`an export to ${name} goes on after a SIGKILL, and has each thread once`, async (t) => {
      const file = join(await someFolder(t), name)
      const { url, state } = await openProxy(t, sluice.url, { held: 5 })
      const killed = start(url, file)
      const saved = async () => JSON.parse(await readFile(`${file}.sluice-checkpoint`, 'utf8'))
      await until('pages are saved, and the next one is held', async () => {
        return state.pages === state.held && (await saved().catch(() => undefined))
      })
      killed.child.kill('SIGKILL')
      assert.equal((await killed.ended).signal, 'SIGKILL')
      const { progress } = await saved()
      // As if it had been killed within a write.
      await appendFile(`${file}.sluice-part`, '{"half":')
      await assert.rejects(readFile(file))
      state.held = Number.POSITIVE_INFINITY
      const { code, stderr } = await start(url, file).ended
      assert.equal(code, 0, stderr)
      assert.match(stderr, new RegExp(`^Going on after ${progress.lines} lines\\.$`, 'm'))
      const data = await readFile(file)
      const lines = linesIn(name.endsWith('.gz') ? gunzipSync(data) : data)
      assert.equal(lines.length, THREADS + 1)
      const names = lines.map((line) => JSON.parse(line).externalId)
      assert.equal(new Set(names).size, THREADS + 1)
    })

  test('a page that breaks off is read again', async (t) => {
    const file = join(await someFolder(t), 'export.ndjson')
    const { url } = await openProxy(t, sluice.url, { cut: 3 })
    const { code, stderr } = await start(url, file).ended
    assert.equal(code, 0, stderr)
    assert.match(stderr, /^Sluice did not answer: .* Trying again in /m)
    assert.equal(linesIn(await readFile(file)).length, THREADS + 1)
  })

  test('an interrupted export says so by its exit code, and another export begins from the start', async (t) => {
    const file = join(await someFolder(t), 'export.ndjson')
    const { url, state } = await openProxy(t, sluice.url, { held: 3 })
    const { child, ended } = start(url, file)
    await until('a page is saved', () =>
      readFile(`${file}.sluice-checkpoint`).then(
        () => true,
        () => false,
      ),
    )
    child.kill('SIGTERM')
    const { code, stderr } = await ended
    assert.equal(code, 4)
    assert.match(
      stderr,
      /^error: The export was interrupted\. The same command goes on from there\.$/m,
    )
    state.held = Number.POSITIVE_INFINITY
    const other = await run([file, '--service', 'email'], { url, apiKey: key })
    assert.deepEqual([other.code, other.stderr], [0, ''])
    assert.equal(linesIn(await readFile(file)).length, 1)
  })

  test('standard output gets the threads and nothing else, filtered', async () => {
    const { stdout, stderr, code } = await start(sluice.url, '-', '--service', 'email').ended
    assert.deepEqual([linesIn(stdout).length, code], [1, 0])
    assert.equal(JSON.parse(stdout).service, 'email')
    assert.match(stderr, /^Done: 1 line /)
    const recent = await start(sluice.url, '-', '--since', '0s').ended
    assert.deepEqual([recent.stdout, recent.code], ['', 0])
  })

  test("an operator names the tenant, and what can't be exported is an error", async (t) => {
    const { url, db, tenant } = sluice
    const operator = await createKey(db, { role: 'operator', name: tenant })
    const file = join(await someFolder(t), 'export.ndjson')
    const ran = await run([file, '--tenant', tenant], { url, apiKey: operator.key })
    assert.deepEqual([ran.code, linesIn(await readFile(file)).length], [0, THREADS + 1])
    const forImporter = await run([file, '--tenant', tenant])
    assert.match(forImporter.stderr, /^error: .*tenant is for an operator's key: leave it out\.\n$/)
    const missing = await run([join(file, 'nothing', 'a.ndjson')])
    assert.match(missing.stderr, /^error: .*: a part of the path is no folder\n$/)
    assert.deepEqual([forImporter.code, missing.code], [1, 1])
    assert.equal(linesIn(await readFile(file)).length, THREADS + 1)
  })
})
