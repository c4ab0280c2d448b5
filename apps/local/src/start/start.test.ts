import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openAdminClient } from '@sluice/cli/test-support'
import { findMongodb, processFacts, UserError } from '@sluice/terminal'
import { beforeSuite, runtimeEnv, type TestScope } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { freePort } from '../servers/machine.ts'

const { HOME, XDG_CACHE_HOME, REDIS_URL, MONGODB_URL } = process.env

/** An app that records its events in a file that all apps share. */
const wellBehaved = (name: string) => `
import { appendFileSync } from 'node:fs'
const trace = (event) => appendFileSync(process.env.TRACE, '${name} ' + event + ' ' + process.pid + '\\n')
process.on('SIGTERM', () => { trace('stopped'); process.exit(0) })
process.on('disconnect', () => process.exit(0))
trace('started')
process.send({ ready: true })
`
const broken = `console.log('no such setting'); process.exit(3)`
/** Answers with the key that it gets. */
const echo = `${wellBehaved('api').replace('process.send({ ready: true })', '')}
import { createServer } from 'node:http'
const answer = (request, response) => response.end(JSON.stringify({ jobs: [], next: request.headers['x-api-key'] }))
createServer(answer).listen(process.env.PORT, process.env.HOST, () => process.send({ ready: true }))
`
const deaf = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); process.send({ ready: true })`

interface Instance {
  readonly child: ChildProcess
  readonly folder: string
  readonly trace: string
  /** Waits for the next line that matches. */
  line(pattern: RegExp): Promise<string>
  exit(): Promise<number | null>
  again(): Promise<Instance>
}

interface Setup {
  folder?: string
  port?: number
  mains?: Partial<Record<'api' | 'worker' | 'dashboard', string>>
  env?: NodeJS.ProcessEnv
  /** The first words of the command line: a program that runs `start`. */
  by?: readonly string[]
}

async function startIn(t: TestScope, setup: Setup = {}): Promise<Instance> {
  const folder = setup.folder ?? (await temporaryFolder(t))
  const trace = join(folder, 'trace')
  const mains: Record<string, string> = {}
  for (const name of ['api', 'worker', 'dashboard'] as const) {
    mains[name] = join(folder, `${name}.mjs`)
    await writeFile(mains[name], setup.mains?.[name] ?? wellBehaved(name))
  }
  const program = fileURLToPath(new URL('start.program.ts', import.meta.url))
  const port = String(setup.port ?? (await freePort()))
  const [command = '', ...args] = [
    ...(setup.by ?? []),
    process.execPath,
    program,
    folder,
    port,
    JSON.stringify(mains),
  ]
  const database = `start_${randomBytes(6).toString('hex')}`
  const servers = {
    REDIS_URL,
    MONGODB_URL: MONGODB_URL?.replace(/(?<=\/\/[^/]+\/)[^?]*/, database),
  }
  const env = { ...runtimeEnv(), HOME, XDG_CACHE_HOME, TRACE: trace, ...servers, ...setup.env }
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  t.onTestFinished(async () => {
    child.kill('SIGTERM')
    await exited
  })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return {
    child,
    folder,
    trace,
    async line(pattern) {
      const seen: string[] = []
      for (;;) {
        const { value, done } = await lines.next()
        if (done) throw new Error(`ended without ${pattern}; its output:\n${seen.join('\n')}`)
        if (pattern.test(value)) return value
        seen.push(value)
      }
    },
    exit: async () => (await exited)[0],
    again: () =>
      startIn(t, { ...setup, folder, env: { ...setup.env, MONGODB_URL: env.MONGODB_URL } }),
  }
}

async function temporaryFolder(t: TestScope): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-start-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function pidsOf(trace: string, name: string): Promise<number[]> {
  const lines = (await readFile(trace, 'utf8').catch(() => ''))
    .split('\n')
    .map((line) => line.split(' '))
  return lines
    .filter(([who, event]) => who === name && event === 'started')
    .map(([, , pid]) => Number(pid))
}

async function untilGone(pid: number): Promise<void> {
  while ((await processFacts(pid)) !== undefined) await pause(10)
}

describe('a start', () => {
  let first: Instance
  /** What it printed before it was ready. */
  const printed: string[] = []
  beforeSuite(async (t) => {
    first = await startIn(t, { mains: { api: echo } })
    do printed.push(await first.line(/^/))
    while (!printed.at(-1)?.startsWith('Dashboard: '))
  })
  const find = (pattern: RegExp) => pattern.exec(printed.join('\n')) ?? assert.fail(`${pattern}`)

  test('prints the processes, a command to try, and at the end that it is ready', async () => {
    const { trace, folder } = first
    const [workers] = find(/^Workers: .*$/m)
    assert.deepEqual(
      (await pidsOf(trace, 'worker')).sort(),
      [...workers.matchAll(/process (\d+)/g)].map(([, pid]) => Number(pid)).sort(),
    )
    assert.ok((await stat(join(folder, '.sluice', 'logs', 'api.log'))).isFile())
    assert.equal((await stat(join(folder, '.sluice'))).mode & 0o777, 0o700)
    const [, key] = find(/^Key: (slc_\w+)/m)
    find(new RegExp(`^ {2}curl -sS http://127.0.0.1:\\d+/sources -H 'x-api-key: ${key}' `, 'm'))
    const [ready, docs, dashboard] = printed.slice(-3)
    const url = /^Ready: (http:\/\/127\.0\.0\.1:\d+)$/.exec(ready ?? '')?.[1]
    assert.equal(docs, `Docs: ${url}/docs`)
    assert.match(
      dashboard ?? '',
      /^Dashboard: http:\/\/127\.0\.0\.1:\d+\/login\?link=token \(process \d+\)$/,
    )
  })

  test('restarts a killed app, with a line about it', async () => {
    const { line, trace } = first
    const [pid = 0] = await pidsOf(trace, 'api')
    process.kill(pid, 'SIGKILL')
    await line(/^api ended \(killed by SIGKILL\)/)
    await line(/^api runs again/)
    assert.equal((await pidsOf(trace, 'api')).length, 2)
  })

  test('is named by a second one in its folder, which ends, and found by other commands', async () => {
    const [, url] = find(/^Ready: (.*)$/m)
    const second = await first.again()
    assert.ok(
      (await second.line(/runs in this folder already/)).includes(
        `${url} (process ${first.child.pid})`,
      ),
    )
    assert.equal(await second.exit(), 1)
    assert.match(await findMongodb(first.folder, {}), /^mongodb:.*\/start_[0-9a-f]{12}/)
    assert.equal(
      await findMongodb(first.folder, { MONGODB_URL: 'mongodb://elsewhere' }),
      'mongodb://elsewhere',
    )
  })

  test('gives `sluice jobs` its API and the operator\u2019s key, which is sent nowhere else', async () => {
    const { folder } = first
    const [, key] = find(/^Key: (slc_\w+)/m)
    const file = join(folder, '.sluice', 'operator-key')
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    const operatorKey = (await readFile(file, 'utf8')).trim()
    assert.notEqual(operatorKey, key)
    const client = await openAdminClient({ folder, env: {} }, {})
    const { next } = await client.list({}, { limit: 1 })
    assert.equal(next, operatorKey)
    await assert.rejects(
      openAdminClient({ folder, env: {} }, { url: 'http://elsewhere.example' }),
      UserError,
    )
  })

  test('stops the API first, then the workers, then the dashboard, and is found no more', async () => {
    const { child, exit, folder, trace } = first
    child.kill('SIGINT')
    assert.equal(await exit(), 0)
    const stopped = (await readFile(trace, 'utf8'))
      .split('\n')
      .filter((event) => event.includes('stopped'))
    assert.deepEqual(
      stopped.map((event) => event.split(' ')[0]),
      ['api', 'worker', 'worker', 'dashboard'],
    )
    await assert.rejects(findMongodb(folder, {}), UserError)
  })
})

test('the SIGKILL of start leaves no process behind, not even one that ignores signals', async (t) => {
  const { child, line, trace } = await startIn(t, { mains: { dashboard: deaf } })
  const dashboard = Number(/process (\d+)/.exec(await line(/^Dashboard/))?.[1])
  const pids = [...(await pidsOf(trace, 'api')), ...(await pidsOf(trace, 'worker')), dashboard]
  child.kill('SIGKILL')
  await Promise.all(pids.map(untilGone))
})

test('it stops in order when the package manager above its parent is killed', async (t) => {
  // pnpm runs a script by a shell that keeps running, and whose command names no package manager.
  const script = 'sh -c "trap : INT; \\"\\$0\\" \\"\\$@\\"; :" "$@"'
  const asNpx = ['bash', '-c', `bash -c '${script} & wait' pnpm "$@" & wait`, 'npx']
  const { child, folder, line } = await startIn(t, { by: asNpx })
  await line(/^Ready/)
  const running = JSON.parse(await readFile(join(folder, '.sluice', 'running.json'), 'utf8'))
  child.kill('SIGKILL')
  await line(/^Stopping \(its parent ended\)/)
  await untilGone(running.pid)
})

test('it stops in order when its own parent is killed', async (t) => {
  const { child, folder, line, trace } = await startIn(t, { by: ['sh', '-c', '"$0" "$@" & wait'] })
  await line(/^Ready/)
  const running = JSON.parse(await readFile(join(folder, '.sluice', 'running.json'), 'utf8'))
  const [api = 0] = await pidsOf(trace, 'api')
  child.kill('SIGKILL')
  await line(/^Stopping \(its parent ended\)/)
  await untilGone(api)
  await untilGone(running.pid)
  assert.match(await readFile(trace, 'utf8'), /^api stopped/m)
})

test('after a killed start the next one works, with the same key', async (t) => {
  const first = await startIn(t)
  const key = await first.line(/^Key: /)
  await first.line(/^Ready/)
  assert.equal((await stat(join(first.folder, '.sluice', 'key'))).mode & 0o777, 0o600)
  first.child.kill('SIGKILL')
  await first.exit()
  const second = await first.again()
  assert.equal(await second.line(/^Key: /), key)
})

test('another database gets a new key', async (t) => {
  const first = await startIn(t)
  const key = await first.line(/^Key: /)
  await first.line(/^Ready/)
  first.child.kill('SIGTERM')
  await first.exit()
  const second = await startIn(t, { folder: first.folder })
  assert.notEqual(await second.line(/^Key: /), key)
})

test('an app that cannot be restarted is tried less and less often, with advice', async (t) => {
  const oncer = `
    import { existsSync, writeFileSync } from 'node:fs'
    if (existsSync(process.env.TRACE + '-once')) { console.log('no space left'); process.exit(3) }
    writeFileSync(process.env.TRACE + '-once', '')
    ${wellBehaved('api')}`
  const { line, trace } = await startIn(t, { mains: { api: oncer } })
  await line(/^Ready/)
  const [api = 0] = await pidsOf(trace, 'api')
  process.kill(api, 'SIGKILL')
  await line(/^api ended \(killed by SIGKILL\); starting it again\. Its log: /)
  const pauses: number[] = []
  for (let attempt = 2; attempt < 5; attempt++) {
    await line(/^api could not be started again: api ended before it was ready \(exit code 3\)/)
    await line(/^no space left$/)
    const [, number, seconds] =
      /^Attempt (\d+) follows in (\d+) s\. /.exec(await line(/^Attempt /)) ?? []
    assert.equal(number, String(attempt))
    pauses.push(Number(seconds))
  }
  assert.deepEqual(pauses, [1, 1, 2])
})

test('a taken port is an error before a server is started', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.onTestFinished(() => void server.close())
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const { line, exit, folder } = await startIn(t, { port, env: { REDIS_URL: '', MONGODB_URL: '' } })
  assert.match(
    await line(/./),
    new RegExp(`Port ${port} is taken on 127.0.0.1. Choose another: PORT=`),
  )
  assert.equal(await exit(), 1)
  await assert.rejects(stat(join(folder, '.sluice', 'data')))
})

test('an app that does not start ends everything, with the end of its log', async (t) => {
  const { line, exit, trace } = await startIn(t, { mains: { worker: broken } })
  await line(/worker-\d ended before it was ready \(exit code 3\)/)
  await line(/no such setting/)
  assert.equal(await exit(), 1)
  for (const pid of await pidsOf(trace, 'api')) assert.equal(await processFacts(pid), undefined)
})

test('a second request kills an app that ignores the first', async (t) => {
  const { child, line, exit } = await startIn(t, {
    mains: { api: deaf },
    env: { GRACE_MS: '60000' },
  })
  const api = Number(/process (\d+)/.exec(await line(/^API: /))?.[1])
  await line(/^Ready/)
  child.kill('SIGINT')
  await line(/^Stopping/)
  // A second signal within a second counts as the first: a terminal and a package manager both pass
  // on one Ctrl-C. None may come at the very end: Node no longer catches signals then.
  const again = setInterval(() => child.kill('SIGINT'), 200)
  const began = performance.now()
  await untilGone(api)
  clearInterval(again)
  assert.equal(await exit(), 0)
  assert.ok(performance.now() - began < 30_000)
})
