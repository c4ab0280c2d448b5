import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { connectFailFast, createEnqueuer, type IngestJob, newJobId, queueKeys } from '@sluice/queue'
import { requiredUrl, startProcess, testQueueName } from '@sluice/test-support'
import { type TestContext, test } from 'vitest'

interface Listing {
  queues: { jobs: { name: string; data: IngestJob }[] }[]
}

/** A running dashboard on a queue of the test's own. */
async function open(t: TestContext) {
  const name = testQueueName()
  const redis = connectFailFast(requiredUrl('REDIS_URL'), () => {})
  await new Promise((resolve) => redis.once('ready', resolve))
  const enqueuer = createEnqueuer(queueKeys(name), redis)
  t.onTestFinished(async () => {
    await enqueuer.queues.interactive.obliterate({ force: true })
    redis.disconnect()
  })
  const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', {
    REDIS_URL: requiredUrl('REDIS_URL'),
    QUEUE: name,
    PORT: '0',
  })
  const { address } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')
  const { port } = Object(address)
  const url = `http://127.0.0.1:${port}`
  // The dashboard listens before Redis answers.
  while ((await fetch(`${url}/readyz`)).status !== 200) await pause(10)
  const jobs = async () => {
    const listing = await fetch(`${url}/api/queues?activeQueue=${name}&jobsPerPage=10&page=1`)
    const { queues }: Listing = JSON.parse(await listing.text())
    return queues.flatMap((queue) => queue.jobs)
  }
  return { dashboard, enqueuer, name, url, jobs, address: Object(address) }
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

test('neither removes nor changes an accepted request, and refuses other sites', async (t) => {
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
  for (const path of [`${id}/clean`, 'empty', 'obliterate', 'clean/failed']) assert.equal(await put(path), 405, path)
  assert.equal(await put('pause', { origin: 'https://elsewhere.example' }), 403)
  assert.equal(await enqueuer.queues.interactive.isPaused(), false)
  assert.equal(await put('pause', { origin: url }), 200)
  assert.equal(await enqueuer.queues.interactive.isPaused(), true)
  assert.equal(await enqueuer.queues.interactive.getWaitingCount(), 1)
})

test('answers 503 at once while Redis is away', async (t) => {
  const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', { REDIS_URL: 'redis://127.0.0.1:1', PORT: '0' })
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
