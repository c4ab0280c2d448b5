import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { connectFailFast, createEnqueuer, type IngestJob, newJobId, queueKeys } from '@sluice/queue'
import { requiredUrl, startProcess, testQueueName, UNBOUNDED } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'

interface Listing {
  queues: { jobs: { name: string; data: IngestJob }[] }[]
}

/** A running dashboard on a queue of the test's own. */
async function open(t: TestContext) {
  const name = testQueueName()
  const redis = connectFailFast(requiredUrl('REDIS_URL'), () => {})
  await new Promise((resolve) => redis.once('ready', resolve))
  const enqueuer = createEnqueuer(queueKeys(name), redis, UNBOUNDED)
  t.onTestFinished(async () => {
    await enqueuer.queues.interactive.obliterate({ force: true })
    redis.disconnect()
  })
  const { dashboard, address, url } = await startDashboard(t, { QUEUE: name })
  // The dashboard listens before Redis answers.
  while ((await fetch(`${url}/readyz`)).status !== 200) await pause(10)
  const jobs = async () => {
    const listing = await fetch(`${url}/api/queues?activeQueue=${name}&jobsPerPage=10&page=1`)
    const { queues }: Listing = JSON.parse(await listing.text())
    return queues.flatMap((queue) => queue.jobs)
  }
  return { dashboard, enqueuer, name, url, jobs, address }
}

async function startDashboard(t: TestContext, settings: Record<string, string>) {
  const servers = { REDIS_URL: requiredUrl('REDIS_URL'), PORT: '0', ADMIN_PORT: '0' }
  const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', { ...servers, ...settings })
  const { address } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')
  return { dashboard, address: Object(address), url: `http://127.0.0.1:${Object(address).port}` }
}

const thread = {
  source: { service: 'slack', externalId: 'thread-1', title: 'A thread' },
  quotes: Array.from({ length: 50 }, (_, at) => ({ externalId: `message-${at}`, text: 'word '.repeat(1_000) })),
} as const

test('lists a job by service and externalId, its payload cut', async (t) => {
  const { enqueuer, jobs } = await open(t)
  await enqueuer.enqueue(newJobId(), 'interactive', {
    tenant: 'acme',
    requestId: 'r',
    retained: false,
    threads: [{ ...thread, quotes: [...thread.quotes] }],
  })
  const [job] = await jobs()
  assert.equal(job?.name, 'slack/thread-1')
  const quotes = job.data.threads[0]?.quotes
  assert.equal(quotes?.length, 11)
  assert.equal(quotes?.[10], '… (40 more)')
  assert.match(quotes?.[0]?.text ?? '', /^word word .*… \(4700 more characters\)$/)
})

test('serves its page and its health, by default to this machine only', async (t) => {
  const { url, address } = await open(t)
  assert.equal(address.address, '127.0.0.1')
  const page = await fetch(url)
  assert.match(await page.text(), /Sluice/)
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'self'/)
  for (const path of ['/livez', '/readyz']) assert.equal((await fetch(url + path)).status, 200)
})

test('neither removes, changes nor retries an accepted request, and refuses other sites', async (t) => {
  const { enqueuer, url, name } = await open(t)
  const id = newJobId()
  await enqueuer.enqueue(id, 'interactive', {
    tenant: 'acme',
    requestId: 'r',
    retained: false,
    threads: [{ ...thread, quotes: [] }],
  })
  const put = async (path: string, headers = {}) =>
    (await fetch(`${url}/api/queues/${name}/${path}`, { method: 'PUT', headers })).status
  const lost = [`${id}/clean`, 'empty', 'obliterate', 'clean/failed']
  // A retry that names nobody and knows no bound: operators have `sluice jobs retry`.
  for (const path of [...lost, `${id}/retry`, 'retry/failed']) assert.equal(await put(path), 405, path)
  assert.equal(await put('pause', { origin: 'https://elsewhere.example' }), 403)
  assert.equal(await enqueuer.queues.interactive.isPaused(), false)
  assert.equal(await put('pause', { origin: url }), 200)
  assert.equal(await enqueuer.queues.interactive.isPaused(), true)
  assert.equal(await enqueuer.queues.interactive.getWaitingCount(), 1)
})

/** The status of a request with headers that `fetch` would not send. */
function statusOf(url: string, headers: Record<string, string>, method = 'GET'): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, setHost: headers.host === undefined }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    sent.on('error', reject)
    sent.end()
  })
}

test('a page whose own host name was rebound to this machine reads and changes nothing', async (t) => {
  const { enqueuer, url, name } = await open(t)
  const { port } = new URL(url)
  const pause = `${url}/api/queues/${name}/pause`
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    `127.0.0.1.evil.example:${port}`,
    `localhost.evil:${port}`,
  ]) {
    const own = { host, origin: `http://${host}` }
    assert.equal(await statusOf(pause, own, 'PUT'), 403, host)
    assert.equal(await statusOf(`${url}/api/queues`, { host }), 403, host)
    assert.equal(await statusOf(url, { host }), 403, host)
  }
  assert.equal(await enqueuer.queues.interactive.isPaused(), false)
  for (const host of ['localhost', `LOCALHOST:${port}`, '[::1]:1', '127.0.0.1']) {
    assert.equal(await statusOf(`${url}/api/queues`, { host }), 200, host)
  }
})

test('the setting names the hosts by which it is reached, and no other', async (t) => {
  const { url } = await startDashboard(t, { DASHBOARD_HOSTS: 'board.example, 10.0.0.7' })
  assert.equal(await statusOf(url, { host: 'board.example:8443', origin: 'https://board.example:8443' }), 200)
  assert.equal(await statusOf(url, { host: '10.0.0.7' }), 200)
  for (const host of ['localhost', '127.0.0.1', 'other.example']) assert.equal(await statusOf(url, { host }), 403, host)
  assert.equal(await statusOf(`${url}/livez`, { host: '10.1.2.3' }), 200)
})

test('requests of other sites are refused, also those that a browser sends without an origin', async (t) => {
  const { url } = await open(t)
  for (const headers of [
    { origin: 'null' },
    { origin: 'https://elsewhere.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' },
  ]) {
    assert.equal(await statusOf(`${url}/api/queues`, headers), 403, JSON.stringify(headers))
    assert.equal(await statusOf(`${url}/api/queues/pause`, headers, 'PUT'), 403, JSON.stringify(headers))
  }
  assert.equal(await statusOf(url, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }), 200)
  assert.equal(await statusOf(`${url}/api/queues`, { origin: url, 'sec-fetch-site': 'same-origin' }), 200)
})

test('no other site may frame a page', async (t) => {
  const { url } = await open(t)
  const { headers } = await fetch(url)
  assert.equal(headers.get('x-frame-options'), 'DENY')
  assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/)
})

test('one request reads a hundred jobs of a state at most, and keeps little of each payload', async (t) => {
  const { enqueuer, url, name, dashboard } = await open(t)
  const big = { ...thread, quotes: [{ text: 'word '.repeat(400_000) }] }
  const job = { tenant: 'acme', requestId: 'r', retained: false }
  for (let at = 0; at < 150; at++) {
    const quotes = at < 100 ? [] : big.quotes
    await enqueuer.enqueue(newJobId(), 'interactive', { ...job, threads: [{ ...thread, quotes }] })
  }
  const before = await peakOf(dashboard.pid)
  const listing = await fetch(`${url}/api/queues?activeQueue=${name}&status=waiting&jobsPerPage=100000&page=1`)
  const text = await listing.text()
  const { queues }: Listing = JSON.parse(text)
  assert.equal(queues.flatMap((queue) => queue.jobs).length, 100)
  assert.ok(text.length < 1_000_000, `${text.length} characters`)
  const grown = (await peakOf(dashboard.pid)) - before
  assert.ok(grown < 120 * 1024 * 1024, `the process grew by ${grown} bytes for payloads of 100 MB`)
})

/** The most memory that a process had so far, in bytes. */
async function peakOf(pid: number): Promise<number> {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

test('answers 503 at once while Redis is away', async (t) => {
  const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', {
    REDIS_URL: 'redis://127.0.0.1:1',
    PORT: '0',
    ADMIN_PORT: '0',
  })
  const { address } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')
  const url = `http://127.0.0.1:${Object(address).port}`
  for (const path of ['/readyz', '/api/queues']) assert.equal((await fetch(url + path)).status, 503, path)
  assert.equal((await fetch(`${url}/livez`)).status, 200)
})

test('stops in order', async (t) => {
  const { dashboard, jobs } = await open(t)
  await jobs()
  dashboard.signal('SIGTERM')
  assert.deepEqual(await dashboard.ended, { code: 0, signal: null })
})
