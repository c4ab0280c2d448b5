import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { createProblem } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { createSessions } from '@sluice/credentials/sessions'
import { connectFailFast } from '@sluice/process/redis'
import { createEnqueuer, createImports, newJobId, queueKeys } from '@sluice/queue'
import {
  beforeSuite,
  requiredUrl,
  startProcess,
  type TestScope,
  testDatabase,
  testQueueName,
  UNBOUNDED,
} from '@sluice/test-support'
import { test } from 'vitest'

interface Listing {
  queues: {
    readOnlyMode: boolean
    jobs: { name: string; data: unknown; externalUrl: { href: string } }[]
  }[]
}

/** A running dashboard on a queue of its own. */
async function open(t: TestScope, settings: Record<string, string> = {}) {
  const name = testQueueName()
  const redis = connectFailFast({ redisUrl: requiredUrl('REDIS_URL'), queue: '' }, () => {})
  await new Promise((resolve) => redis.once('ready', resolve))
  const enqueuer = createEnqueuer(queueKeys(name), redis, UNBOUNDED)
  t.onTestFinished(async () => {
    await enqueuer.queues.interactive.obliterate({ force: true })
    redis.disconnect()
  })
  const { dashboard, address, url } = await startDashboard(t, { QUEUE: name, ...settings })
  // The dashboard listens before Redis answers.
  while ((await fetch(`${url}/readyz`)).status !== 200) await pause(10)
  const token = await createSessions(redis, queueKeys(name)).open({
    role: 'operator',
    by: 'ada@here',
  })
  const cookie = `sluice=${token}`
  const listing = async (query: string) => {
    const answer = await fetch(`${url}/board/api/queues?activeQueue=${name}&${query}`, {
      headers: { cookie },
    })
    const text = await answer.text()
    const { queues }: Listing = JSON.parse(text)
    return { text, queues, jobs: queues.flatMap((queue) => queue.jobs) }
  }
  return { dashboard, enqueuer, redis, name, url, listing, address, cookie }
}

async function startDashboard(t: TestScope, settings: Record<string, string>) {
  const servers = {
    REDIS_URL: requiredUrl('REDIS_URL'),
    MONGODB_URL: requiredUrl('MONGODB_URL'),
    PORT: '0',
    ADMIN_PORT: '0',
  }
  const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', { ...servers, ...settings })
  const { address } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')
  return { dashboard, address: Object(address), url: `http://127.0.0.1:${Object(address).port}` }
}

/** Serves the tests that use up no address's attempts. The last one stops it. */
let shared: Awaited<ReturnType<typeof open>>
beforeSuite(async (t) => {
  shared = await open(t)
})

const thread = {
  source: { service: 'slack', externalId: 'thread-1', title: 'A thread' },
  quotes: Array.from({ length: 50 }, (_, at) => ({
    externalId: `message-${at}`,
    text: 'word '.repeat(1_000),
  })),
} as const

/** What a thread says. */
const VALUE = 'Ada-said-it'

test('Bull Board lists a job by service and externalId, without its payload, and changes nothing', async () => {
  const { enqueuer, listing, url, name, cookie } = shared
  const id = newJobId()
  const job = { tenant: 'acme', requestId: 'r', retained: false }
  await enqueuer.enqueue(id, 'interactive', {
    ...job,
    threads: [{ ...thread, quotes: [...thread.quotes] }],
  })
  const { text, queues, jobs } = await listing('jobsPerPage=10&page=1')
  assert.deepEqual([jobs[0]?.name, jobs[0]?.externalUrl.href], ['slack/thread-1', `/jobs/${id}`])
  assert.doesNotMatch(text, /word word|message-1/)
  assert.match(text, /"attempts":5\b/)
  assert.ok(queues.every(({ readOnlyMode }) => readOnlyMode))
  const board = await fetch(`${url}/board`, { headers: { cookie } })
  assert.doesNotMatch(await board.text(), /https?:/)
  const csp = board.headers.get('content-security-policy') ?? ''
  assert.match(csp, /style-src 'self' 'unsafe-inline'/)
  for (const path of [
    `${id}/clean`,
    'empty',
    'obliterate',
    'clean/failed',
    `${id}/retry`,
    'retry/failed',
    'pause',
  ]) {
    const act = { method: 'PUT', headers: { cookie, origin: url } }
    // Bull Board sends no token of the session's forms.
    assert.equal((await fetch(`${url}/board/api/queues/${name}/${path}`, act)).status, 403, path)
  }
  assert.equal(await enqueuer.queues.interactive.isPaused(), false)
  assert.equal(await enqueuer.queues.interactive.getWaitingCount(), 1)
})

test('serves its login and its health, by default to this machine only', async () => {
  const { url, address } = shared
  assert.equal(address.address, '127.0.0.1')
  const page = await fetch(`${url}/login`)
  assert.match(await page.text(), /Key of an operator or a viewer/)
  assert.match(
    page.headers.get('content-security-policy') ?? '',
    /^default-src 'none'; script-src 'self'; style-src 'self'; /,
  )
  for (const path of ['/livez', '/readyz']) assert.equal((await fetch(url + path)).status, 200)
})

test('without a session, nothing but the login answers, and an address tries ten times a minute', async (t) => {
  const { url, cookie } = await open(t)
  for (const path of [
    '/',
    '/find?q=a',
    '/failures',
    '/imports',
    '/operations',
    '/board',
    '/board/api/queues',
    '/nothing',
  ])
    for (const headers of [{}, { cookie: `${cookie}x` }, { cookie: 'sluice=' }])
      assert.equal((await fetch(url + path, { headers })).status, 401, path)
  assert.equal((await fetch(`${url}/nothing`, { headers: { cookie } })).status, 404)
  const guesses = Array.from({ length: 11 }, () => ({
    link: randomBytes(32).toString('base64url'),
  }))
  assert.deepEqual(await logIn(url, guesses), [...Array(10).fill(403), 429])
})

test('keys and links of another form do not use up the attempts of an address', async () => {
  const { url, name, redis } = shared
  const typo = `slc_${'0'.repeat(36)}`
  const malformed = [
    { key: 'slc_wrong' },
    { key: typo },
    { key: '' },
    { link: 'short' },
    { link: 'x'.repeat(44) },
  ]
  assert.deepEqual(
    await logIn(url, [...malformed, ...malformed, ...malformed]),
    Array(15).fill(403),
  )
  const link = await createSessions(redis, queueKeys(name)).createLink({
    role: 'operator',
    by: 'ada@here',
  })
  assert.deepEqual(await logIn(url, [{ link }]), [303])
})

/** Returns the status of each attempt. */
async function logIn(url: string, tries: readonly Record<string, string>[]): Promise<number[]> {
  const statuses: number[] = []
  for (const one of tries) {
    const init = { method: 'POST', headers: { origin: url }, redirect: 'manual' } as const
    statuses.push((await fetch(`${url}/login`, { ...init, body: new URLSearchParams(one) })).status)
  }
  return statuses
}

test('with a URL of https, the session goes by https only', async (t) => {
  const { url, name, redis } = await open(t, { DASHBOARD_URL: 'https://127.0.0.1' })
  const link = await createSessions(redis, queueKeys(name)).createLink({
    role: 'viewer',
    by: 'ada@here',
  })
  const [body, headers] = [
    new URLSearchParams({ link, to: '//elsewhere.example/' }),
    { origin: url },
  ]
  const answer = await fetch(`${url}/login`, { method: 'POST', headers, body, redirect: 'manual' })
  assert.equal(answer.headers.get('location'), '/')
  assert.match(
    answer.headers.get('set-cookie') ?? '',
    /^__Host-sluice=[\w-]{43}; Max-Age=28800; Path=\/; .*HttpOnly; Secure; SameSite=Lax$/,
  )
})

/** The status of a request with headers that `fetch` would not send. */
function statusOf(
  url: string,
  headers: Record<string, string>,
  method = 'GET',
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { method, headers, setHost: headers.host === undefined },
      (response) => {
        response.resume()
        resolve(response.statusCode)
      },
    )
    sent.on('error', reject)
    sent.end()
  })
}

test('a page whose own host name was rebound to this machine reads and changes nothing', async () => {
  const { url, cookie } = shared
  const { port } = new URL(url)
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    `127.0.0.1.evil.example:${port}`,
    `localhost.evil:${port}`,
  ]) {
    const own = { host, origin: `http://${host}`, cookie }
    assert.equal(await statusOf(`${url}/login`, own, 'POST'), 403, host)
    assert.equal(await statusOf(`${url}/board/api/queues`, { host, cookie }), 403, host)
    assert.equal(await statusOf(url, { host }), 403, host)
  }
  for (const host of ['localhost', `LOCALHOST:${port}`, '[::1]:1', '127.0.0.1'])
    assert.equal(await statusOf(url, { host, cookie }), 200, host)
})

test('the setting names the hosts by which it is reached, and no other', async (t) => {
  const { url } = await startDashboard(t, { DASHBOARD_HOSTS: 'board.example, 10.0.0.7' })
  const login = `${url}/login`
  while ((await statusOf(`${url}/readyz`, { host: '10.1.2.3' })) !== 200) await pause(10)
  assert.equal(
    await statusOf(login, { host: 'board.example:8443', origin: 'https://board.example:8443' }),
    200,
  )
  assert.equal(await statusOf(login, { host: '10.0.0.7' }), 200)
  for (const host of ['localhost', '127.0.0.1', 'other.example'])
    assert.equal(await statusOf(url, { host }), 403, host)
  assert.equal(await statusOf(`${url}/livez`, { host: '10.1.2.3' }), 200)
})

test('requests of other sites are refused, also those that a browser sends without an origin', async () => {
  const { url, cookie } = shared
  for (const headers of [
    { origin: 'null' },
    { origin: 'https://elsewhere.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' },
  ]) {
    assert.equal(
      await statusOf(`${url}/find?q=a`, { ...headers, cookie }),
      403,
      JSON.stringify(headers),
    )
    assert.equal(
      await statusOf(`${url}/logout`, { ...headers, cookie }, 'POST'),
      403,
      JSON.stringify(headers),
    )
  }
  const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', cookie }
  assert.equal(await statusOf(url, link), 200)
  assert.equal(await statusOf(`${url}/logout`, link, 'POST'), 403)
  assert.equal(await statusOf(url, { origin: url, 'sec-fetch-site': 'same-origin', cookie }), 200)
})

test('no other site may frame a page', async () => {
  const { url } = shared
  const { headers } = await fetch(url)
  assert.equal(headers.get('x-frame-options'), 'DENY')
  assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/)
})

test('a viewer sees no value of a thread on any page, and neither filters by reason nor acts', async () => {
  const { enqueuer, redis, name, url, cookie } = shared
  const keys = queueKeys(name)
  const [id, importId] = [newJobId(), newJobId()]
  const reason = `text "${VALUE}" is refused`
  const job = { tenant: 'acme', requestId: 'r', retained: false }
  await enqueuer.enqueue(id, 'bulk', {
    ...job,
    threads: [{ ...thread, quotes: [{ text: VALUE }] }],
  })
  await redis.lrem(`${keys.jobs.bulk}wait`, 1, id)
  await redis.zadd(keys.failed.bulk, Date.now(), id)
  const tried = { at: new Date().toISOString(), worker: 'here:1', reason }
  await redis.hset(keys.jobs.bulk + id, { failedReason: reason, tries: JSON.stringify(tried) })
  const refused = createProblem('request_invalid', { detail: reason, requestId: 'r' })
  const ofImport = {
    tenant: 'acme',
    received: 1,
    jobs: 0,
    failed: 1,
    refused: [{ index: 0, refused }],
  }
  await createImports(redis, keys).open(importId, ofImport)
  const viewer = `sluice=${await createSessions(redis, keys).open({ role: 'viewer', by: 'bob@here' })}`
  const textOf = async (path: string, as: string) =>
    (await fetch(url + path, { headers: { cookie: as } })).text()
  const [group = ''] = /\/failures\/\w{8}/.exec(await textOf('/failures', viewer)) ?? []
  const threadPath = '/thread?tenant=acme&service=slack&externalId=thread-1'
  for (const path of [
    group,
    `/jobs/${id}`,
    '/jobs?state=failed',
    `/find?q=${id}`,
    threadPath,
    `/imports/${importId}`,
  ]) {
    assert.match(await textOf(path, cookie), new RegExp(VALUE), path)
    const shown = await textOf(path, viewer)
    assert.match(shown, /is refused|request_invalid/, path)
    assert.doesNotMatch(shown, new RegExp(VALUE), path)
  }
  const byReason = await fetch(`${url}/find?q=${id}&reason=${VALUE}`, {
    headers: { cookie: viewer },
  })
  assert.equal(byReason.status, 400)
  assert.match(await byReason.text(), /A viewer looks up no reasons\./)
  const csrf = /name="csrf" value="(\w+)"/.exec(await textOf('/', viewer))?.[1] ?? ''
  for (const path of [
    `/jobs/${id}/reveal`,
    '/jobs/retry',
    '/jobs/discard',
    threadPath.replace('?', '/reveal?'),
    threadPath.replace('?', '/delete?'),
    '/lanes/bulk/pause',
  ]) {
    const init = {
      method: 'POST',
      headers: { cookie: viewer, origin: url },
      body: new URLSearchParams({ csrf }),
    }
    const answer = await fetch(url + path, init)
    assert.equal(answer.status, 403, path)
    assert.doesNotMatch(await answer.text(), new RegExp(VALUE), path)
  }
})

test('a discard of selected jobs names first what is lost, and that of a job page needs no more question', async () => {
  const { enqueuer, redis, name, url, cookie } = shared
  const { base, jobs, failed } = queueKeys(name)
  const ids = [newJobId(), newJobId()]
  for (const id of ids) {
    await enqueuer.enqueue(id, 'bulk', {
      tenant: 'acme',
      requestId: 'r',
      retained: false,
      threads: [thread, thread],
    })
    await redis.lrem(`${jobs.bulk}wait`, 1, id)
    await redis.zadd(failed.bulk, Date.now(), id)
  }
  const textOf = async (path: string) => (await fetch(url + path, { headers: { cookie } })).text()
  /** Sends the hidden fields of the form that discards, and others. */
  async function discard(page: string, others: readonly string[][] = []) {
    const [, form = ''] = page.split('action="/jobs/discard"')
    const hidden = [...(form.split('</form>')[0] ?? '').matchAll(/name="(\w+)" value="([^"]*)"/g)]
    const body = new URLSearchParams()
    for (const [field = '', value = ''] of [...others, ...hidden.map((found) => found.slice(1))])
      body.append(field, value)
    return fetch(`${url}/jobs/discard`, {
      method: 'POST',
      headers: { cookie, origin: url },
      body,
      redirect: 'manual',
    })
  }
  const csrf = /name="csrf" value="(\w+)"/.exec(await textOf('/jobs?state=failed'))?.[1] ?? ''
  const question = await (
    await discard('', [['csrf', csrf], ...ids.map((id) => ['id', id])])
  ).text()
  assert.match(
    question,
    /This removes 2 jobs for good\. 4 threads could not be stored, and would be lost\./,
  )
  for (const [page, named] of [
    [question, ids],
    [await textOf(`/jobs/${ids[0]}`), [ids[0]]],
  ] as const) {
    const location = (await discard(page)).headers.get('location') ?? ''
    const request = await redis.hget(
      `${base}operation:${location.replace('/operations#', '')}`,
      'request',
    )
    assert.deepEqual(JSON.parse(request ?? '{}'), { ids: named })
  }
})

test('one request reads a hundred jobs of a state at most, and no payload', async (t) => {
  const { enqueuer, listing, dashboard } = await open(t)
  const big = { ...thread, quotes: [{ text: 'word '.repeat(400_000) }] }
  const job = { tenant: 'acme', requestId: 'r', retained: false }
  for (let at = 0; at < 150; at++) {
    const quotes = at < 100 ? [] : big.quotes
    await enqueuer.enqueue(newJobId(), 'interactive', { ...job, threads: [{ ...thread, quotes }] })
  }
  const before = await peakOf(dashboard.pid)
  const { text, jobs } = await listing('status=waiting&jobsPerPage=100000&page=1')
  assert.equal(jobs.length, 100)
  assert.ok(text.length < 1_000_000, `${text.length} characters`)
  const grown = (await peakOf(dashboard.pid)) - before
  assert.ok(grown < 120 * 1024 * 1024, `the process grew by ${grown} bytes for payloads of 100 MB`)
})

/** The most memory that a process had so far, in bytes. */
async function peakOf(pid: number): Promise<number> {
  return (
    Number(/^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  )
}

test('says at once that Redis is unavailable, and nothing else', async (t) => {
  const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', {
    REDIS_URL: 'redis://127.0.0.1:1',
    PORT: '0',
    ADMIN_PORT: '0',
  })
  const { address } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')
  const url = `http://127.0.0.1:${Object(address).port}`
  for (const path of ['/readyz', '/board/api/queues', '/login', '/'])
    assert.equal((await fetch(url + path)).status, 503, path)
  const text = await (await fetch(url)).text()
  assert.match(text, /Redis cannot be reached/)
  assert.doesNotMatch(text, /<nav|<form/)
  assert.equal((await fetch(`${url}/livez`)).status, 200)
})

test('while MongoDB is unavailable, a link logs in, and a key is told why it does not', async (t) => {
  const { url, name, redis } = await open(t, { MONGODB_URL: 'mongodb://127.0.0.1:1/unavailable' })
  const send = (form: Record<string, string>) => {
    const body = new URLSearchParams(form)
    return fetch(`${url}/login`, {
      method: 'POST',
      headers: { origin: url },
      body,
      redirect: 'manual',
    })
  }
  const { key } = await createKey(await testDatabase(t), { role: 'operator', name: 'on call' })
  const refused = await send({ key })
  assert.equal(refused.status, 503)
  assert.match(
    await refused.text(),
    /MongoDB is unavailable, so no key can be checked\. .*sluice login/,
  )
  const link = await createSessions(redis, queueKeys(name)).createLink({
    role: 'viewer',
    by: 'ada@here',
  })
  const cookie = /^[^;]*/.exec((await send({ link })).headers.get('set-cookie') ?? '')?.[0] ?? ''
  for (const path of ['/', '/failures', '/imports', '/operations'])
    assert.equal((await fetch(url + path, { headers: { cookie } })).status, 200, path)
})

test('stops in order', async () => {
  const { dashboard, listing } = shared
  await listing('page=1')
  dashboard.signal('SIGTERM')
  assert.deepEqual(await dashboard.ended, { code: 0, signal: null })
})
