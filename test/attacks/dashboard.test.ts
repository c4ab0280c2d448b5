// Attacks on the dashboard through an operator's browser: other sites, foreign hosts, frames, and
// HTML in every field.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { createSessions } from '@sluice/credentials/sessions'
import { connectRetrying } from '@sluice/process/redis'
import { type IngestJob, openQueue, queueKeys } from '@sluice/queue'
import { beforeSuite, startProcess } from '@sluice/test-support'
import type { Queue } from 'bullmq'
import { describe, test } from 'vitest'
import { createCaller, type Reply } from '../e2e/support/caller.ts'
import { acceptedIn } from '../e2e/support/read-reply.ts'
import { someThread } from '../e2e/support/some-thread.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

const HTML = '<img src=x onerror=alert(1)><script>alert(2)</script>"\'-->'
const MARKUP = /<img src=x|<script>alert/i

describe("the dashboard in an operator's browser", () => {
  let url: string
  let name: string
  let id: string
  let queue: Queue<IngestJob>
  let cookie: string

  beforeSuite(async (t) => {
    const sluice = await startSluice(t, { workers: 0 })
    name = sluice.settings.QUEUE ?? ''
    const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', {
      ...sluice.settings,
      PORT: '0',
    })
    const { address } = await dashboard.line(({ msg }) => msg === 'dashboard.listening')
    url = `http://127.0.0.1:${Object(address).port}`
    await until('the dashboard is ready', async () => (await fetch(`${url}/readyz`)).ok)
    const redis = connectRetrying(
      { redisUrl: sluice.settings.REDIS_URL ?? '', queue: '' },
      () => {},
    )
    const keys = queueKeys(name)
    queue = openQueue(keys, 'bulk', redis)
    cookie = `sluice=${await createSessions(redis, keys).open({ role: 'operator', by: 'ada@here' })}`
    t.onTestFinished(async () => {
      await queue.close()
      redis.disconnect()
    })
    id = await postHtml(sluice)
    // What a worker records of a failure may repeat what the request held.
    const failure = {
      failedReason: HTML,
      stacktrace: JSON.stringify([HTML]),
      returnvalue: JSON.stringify(HTML),
    }
    await redis.hset(`${keys.jobs.bulk}${id}`, failure)
  })

  /** Posts a thread with HTML in every text, and returns its job's id. */
  async function postHtml(sluice: { url: string; key: string }): Promise<string> {
    const fields = {
      title: HTML,
      externalId: HTML,
      channelName: HTML,
      channelId: HTML,
      description: HTML,
      url: `javascript:${HTML}`,
    }
    const quote = { text: HTML, externalId: HTML, speaker: HTML, replyingTo: HTML }
    const reply = await createCaller(sluice).post(someThread({ ...fields, quotes: [quote] }), {
      prefer: 'respond-async',
    })
    acceptedIn(reply)
    return reply.headers.get('location')?.slice('/jobs/'.length) ?? ''
  }

  /** Sends as the browser of an operator does, with headers that a page can't choose. */
  function send(
    path: string,
    headers: Record<string, string> = {},
    method = 'GET',
  ): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    const sent = request(
      url + path,
      { method, headers: { cookie, ...headers } },
      async (response) => {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk)
        const told = Object.entries(response.headers).map(([key, value]): [string, string] => [
          key,
          String(value),
        ])
        resolve({
          status: response.statusCode ?? 0,
          headers: new Headers(told),
          text: Buffer.concat(chunks).toString(),
        })
      },
    )
    sent.on('error', reject).end()
    return promise
  }

  const bulk = () => `${name}-bulk`
  const acts = () => [
    '/jobs/retry',
    '/jobs/discard',
    `/jobs/${id}/reveal`,
    '/failures/discard',
    '/logout',
    `/board/api/queues/${bulk()}/pause`,
    `/board/api/queues/pause`,
    `/board/api/queues/${bulk()}/${id}/retry`,
    `/board/api/queues/${bulk()}/${id}/clean`,
    `/board/api/queues/${bulk()}/obliterate`,
  ]

  test('another site can change nothing, under any origin', async () => {
    const { host } = new URL(url)
    const origins = [
      'https://elsewhere.example',
      'null',
      `https://${host}.elsewhere.example`,
      `http://localhost:1`,
      'file://',
      `http://${host}@elsewhere.example`,
    ]
    for (const origin of origins) {
      for (const path of acts()) {
        for (const method of ['PUT', 'POST'])
          assert.equal((await send(path, { origin }, method)).status, 403, `${origin} ${path}`)
      }
    }
    assert.equal(await queue.isPaused(), false)
    assert.equal(await queue.getWaitingCount(), 1)
  })

  test('a form, an image or a link of another site changes nothing', async () => {
    for (const path of acts()) {
      await send(path)
      const form = {
        origin: 'https://elsewhere.example',
        'content-type': 'application/x-www-form-urlencoded',
      }
      assert.equal((await send(path, form, 'POST')).status, 403)
    }
    assert.equal(await queue.isPaused(), false)
    assert.equal(await queue.getWaitingCount(), 1)
  })

  test('no answer allows another site to read it', async () => {
    for (const path of ['/', '/board/api/queues', '/readyz', '/api/nothing']) {
      const { headers } = await send(path, { origin: 'https://elsewhere.example' })
      assert.equal(headers.get('access-control-allow-origin'), null, path)
    }
  })

  test('every answer forbids frames, foreign scripts and guesses of its type', async () => {
    const paths = [
      '/',
      `/board/queue/${bulk()}`,
      '/board/api/queues',
      '/board/static/nothing.js',
      '/nothing',
      '/livez',
      '/login',
    ]
    for (const path of paths) {
      const { headers } = await send(path)
      const policy = headers.get('content-security-policy') ?? ''
      assert.match(policy, /default-src '(self|none)'/, path)
      assert.ok(
        /frame-ancestors 'none'/.test(policy) || headers.get('x-frame-options') === 'DENY',
        path,
      )
      assert.doesNotMatch(policy, /script-src[^;]*unsafe|default-src[^;]*unsafe/, path)
      assert.equal(headers.get('x-content-type-options'), 'nosniff', path)
    }
  })

  test('HTML in every field of a job is in no page', async () => {
    for (const path of [
      `/board/api/queues/${bulk()}/${id}`,
      `/board/api/queues/${bulk()}/${id}/logs`,
    ]) {
      const { status, headers } = await send(path)
      assert.equal(status, 200, path)
      assert.match(headers.get('content-type') ?? '', /^application\/json/, path)
    }
    const text = encodeURIComponent(HTML)
    assert.match((await send(`/find?q=${text}`)).text, /&lt;img src=x/)
    for (const path of [
      '/',
      `/find?q=${text}`,
      `/jobs/${id}`,
      '/board',
      `/board/queue/${bulk()}/${id}`,
    ])
      assert.doesNotMatch((await send(path)).text, MARKUP, path)
  })

  test('HTML in a path or a query is in no page', async () => {
    const text = encodeURIComponent(HTML)
    const paths = [
      `/board/api/queues/${text}/${text}`,
      `/board/api/queues?activeQueue=${text}`,
      `/board/queue/${text}`,
      `/${text}`,
      `/login?link=${text}&to=${text}`,
      `/find?q=${text}&state=${text}&tenant=${text}`,
      `/find?${text}=${text}`,
    ]
    for (const path of paths) {
      const { headers, text: page } = await send(path)
      if (/html/.test(headers.get('content-type') ?? '')) assert.doesNotMatch(page, MARKUP, path)
    }
  })
})
