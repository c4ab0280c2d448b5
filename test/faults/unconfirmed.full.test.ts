import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { beforeSuite, requiredUrl } from '@sluice/test-support'
import { Redis } from 'ioredis'
import { describe, type TestContext, test } from 'vitest'
import { readMetric } from '../e2e/support/until-metric.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, postThread, type Target } from '../support/post-thread.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { type Gate, openTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { sendHead } from './open-request.ts'

const NOTHING = Buffer.alloc(0)
const UNCONFIRMED = 'unconfirmed-thread'
/** The last byte of what a job adds to the load, if its result must be retained (MessagePack). */
const PACKED_TRUE = 0xc3

/** A connection on which a certain thread was enqueued brings no reply any more. */
function withholdConfirmation(): Gate {
  let isWithheld = false
  return {
    toServer(chunk) {
      isWithheld ||= chunk.includes(UNCONFIRMED)
      return chunk
    },
    toClient: (chunk) => (isWithheld ? NOTHING : chunk),
  }
}

let sluice: TestSluice
beforeSuite(async (t) => {
  sluice = await startSluice(t, { workers: 0 })
})

/** An API of the test's own that reaches Redis through a proxy. Workers reach Redis themselves. */
async function setUp(t: TestContext, gate?: () => Gate) {
  const proxy = await openTcpProxy(t, requiredUrl('REDIS_URL'), gate)
  const { api: process, url } = await sluice.startApi({ REDIS_URL: proxy.url })
  return { api: { url, key: sluice.key }, proxy, process }
}

test('while Redis keeps a request waiting, others are refused before their bodies are read', async (t) => {
  const { api, proxy } = await setUp(t)
  proxy.freeze()
  let answered = 0
  const post = () => postThread(api, aThread()).finally(() => (answered += 1))
  const posted = [post()]
  await until('the API to read bodies', async () => (await answerToHead(api)) === 'continue')
  // This one waits in the API for the reply to the first one.
  posted.push(post())
  await until('a refusal', async () => (await answerToHead(api)) === 503)
  assert.equal(answered, 0)
  for (const { body } of await Promise.all(posted)) assert.equal(body.code, 'queue_unavailable')
})

describe('a request that Redis accepted without confirming it', () => {
  test('keeps its result for as long as a caller with the job’s id may come for it', async (t) => {
    const { api } = await setUp(t, withholdConfirmation)
    const { drained } = openQueue(t, sluice.settings)
    const thread = aThread({ externalId: UNCONFIRMED })
    const posted = await postThread(api, thread, undefined, 'unconfirmed')
    assert.deepEqual([posted.status, posted.body.code], [504, 'acceptance_unknown'])
    const { jobId } = posted.body
    const redis = new Redis(requiredUrl('REDIS_URL'))
    t.onTestFinished(() => redis.disconnect())
    await until('the replica to mark the job', async () => {
      const counted = await redis.hgetBuffer(
        `{${sluice.settings.QUEUE}}:sluice:load:jobs`,
        String(jobId),
      )
      return counted?.includes(PACKED_TRUE)
    })
    await sluice.startWorker()
    await drained()
    const job = await fetch(`${sluice.url}/jobs/${jobId}`, { headers: { 'x-api-key': api.key } })
    const { state, result } = (await job.json()) as {
      state: string
      result: { source: { externalId: string } }
    }
    assert.deepEqual([state, result.source.externalId], ['completed', UNCONFIRMED])
    assert((await redis.ttl(`{${sluice.settings.QUEUE}}:sluice:retained:${jobId}`)) > 3_000)
    const again = await postThread(
      { url: sluice.url, key: api.key },
      thread,
      undefined,
      'unconfirmed',
    )
    assert.deepEqual([again.status, again.body], [200, result])
  })

  test('is answered 200 once it is stored, and counted as accepted', async (t) => {
    const { api, process } = await setUp(t, withholdConfirmation)
    const posted = await postThread(api, aThread({ externalId: `${UNCONFIRMED}-2` }))
    assert.deepEqual(
      [posted.status, posted.body.message],
      [200, 'New source received successfully.'],
    )
    const { id: sourceId } = Object(posted.body.source)
    assert.equal(await sluice.db.collection('quotes').countDocuments({ sourceId }), 3)
    await until(
      'the count',
      async () => (await readMetric(process, 'sluice_threads_accepted_total')) === 1,
    )
  })
})

/**
 * The status with which the head of a post is answered, or `continue` if its body is asked for. It
 * is never sent.
 */
async function answerToHead(target: Target): Promise<number | 'continue' | undefined> {
  const open = sendHead(target, 1_000)
  const asked = once(open, 'continue').then(() => 'continue' as const)
  const refused = once(open, 'response').then(
    ([response]: IncomingMessage[]) => response?.statusCode,
  )
  try {
    return await Promise.race([asked, refused])
  } finally {
    open.on('error', () => {}).destroy()
  }
}
