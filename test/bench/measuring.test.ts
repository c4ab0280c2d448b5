import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type TestContext, test } from 'vitest'
import { databaseUrl } from '../../bench/src/contenders/database.ts'
import { listenerOf } from '../../bench/src/measure/listener-of.ts'
import { usageOf } from '../../bench/src/measure/usage-of.ts'
import { openLoop, runOf } from '../../bench/src/open-loop.ts'
import { median, percentiles } from '../../bench/src/percentiles.ts'
import { makeThreads, renamed, takeSome } from '../../bench/src/threads.ts'

test('one request in a hundred exceeds the 99th percentile', () => {
  const times = Array.from({ length: 1_000 }, (_, at) => 1_000 - at)
  assert.deepEqual(percentiles(times), { p50: 501, p99: 991 })
  assert.equal(median([9, 1, 5]), 5)
})

test('the same seed gives the same threads, and one in ten of them is an earlier one', () => {
  const made = makeThreads('a-name', 2_000)
  assert.deepEqual(makeThreads('a-name', 2_000), made)
  const reposted = made.length - new Set(made).size
  assert.ok(reposted > 150 && reposted < 250, `${reposted} of 2,000`)
})

test('renamed threads keep their quotes and are all new', () => {
  const some = takeSome(renamed(makeThreads('a-name', 20, 1, 0), 'a-name'), 60)
  const ids = some.map(({ body }) => JSON.parse(body.toString()).externalId)
  assert.equal(new Set(ids).size, 60)
})

test('an open loop counts the time that a request waited because the service had stopped', async (t) => {
  const url = await serverThatStops(t, 300)
  const made = makeThreads('a-name', 50)
  const samples = await openLoop({
    urls: [url],
    key: 'k',
    threads: made,
    rate: 100,
    signal: new AbortController().signal,
  })
  const { p99, failed } = runOf(samples)
  assert.equal(failed, 0)
  assert.ok(p99 >= 250, `p99 ${p99} ms`)
  assert.ok(samples.filter(({ took }) => took > 100).length >= 15, 'only the first ones waited')
})

test('the usage of a process is read', async (t) => {
  const busy = spawn(process.execPath, [
    '-e',
    // Few calls of the system: most of its time is the program's own.
    'while (process.cpuUsage().user < 3e5) for (let at = 0; at < 1e6; at++); console.log(1); setInterval(() => {}, 1000)',
  ])
  t.onTestFinished(() => void busy.kill())
  await once(busy.stdout, 'data')
  const usage = await usageOf(busy.pid ?? 0)
  assert.ok(usage !== undefined)
  assert.ok(usage.cpuMs >= 200 && usage.cpuMs < 60_000, `${usage.cpuMs} ms`)
  assert.ok(usage.rssBytes > 20e6 && usage.rssBytes < 500e6, `${usage.rssBytes} bytes`)
})

test('the process that listens on a port is found', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.onTestFinished(() => void server.close())
  await once(server, 'listening')
  assert.equal(await listenerOf(portOf(server)), process.pid)
})

test('the URL of another database keeps the source of its credentials', () => {
  assert.equal(
    databaseUrl('mongodb://a:1,b:2/?replicaSet=r', 'x'),
    'mongodb://a:1,b:2/x?replicaSet=r',
  )
  assert.equal(databaseUrl('mongodb://u:p@a/mine', 'x'), 'mongodb://u:p@a/x?authSource=mine')
  assert.equal(databaseUrl('mongodb+srv://u:p@a', 'x'), 'mongodb+srv://u:p@a/x?authSource=admin')
})

/**
 * A service that answers nothing for this long (ms) after its first request, and then everything at
 * once.
 */
async function serverThatStops(t: TestContext, ms: number): Promise<string> {
  let opened: Promise<void> | undefined
  const server = createServer(async (request, response) => {
    opened ??= new Promise((resolve) => setTimeout(resolve, ms))
    request.resume()
    await opened
    response.end()
  }).listen(0, '127.0.0.1')
  t.onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${portOf(server)}`
}

function portOf(server: ReturnType<typeof createServer>): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}
