import assert from 'node:assert/strict'
import { beforeSuite, requiredUrl } from '@sluice/test-support'
import { describe, type TestContext, test } from 'vitest'
import { openQueue } from '../support/open-queue.ts'
import { aThread, type Posted, postThread } from '../support/post-thread.ts'
import { startSluice, type TestSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { type Gate, OPEN_GATE, openTcpProxy } from '../support/tcp-proxy.ts'
import { BUSY_MS, until } from '../support/until.ts'

let sluice: TestSluice
beforeSuite(async (t) => {
  sluice = await startSluice(t)
})

/**
 * A replica of the test's own that reaches Redis only through a proxy, beside the one that all
 * tests share.
 */
async function setUp(t: TestContext, gate?: () => Gate) {
  const proxy = await openTcpProxy(t, requiredUrl('REDIS_URL'), gate)
  const { url } = await sluice.startApi({ REDIS_URL: proxy.url })
  await untilKeyIsKnown(url, sluice.key)
  const cutOff = { ...sluice, url }
  assert.equal((await postThread(cutOff, aThread())).status, 200)
  return { cutOff, proxy, ...openQueue(t, sluice.settings) }
}

/** The replica reaches Redis again, and all that it ever sent has been handled. */
async function healed({ url, key }: { url: string; key: string }): Promise<void> {
  await until(
    'the replica accepts again',
    async () => (await postThread({ url, key }, aThread())).status === 200,
  )
}

function assertUnknown({ status, body, headers, ms }: Posted): void {
  assert.deepEqual([status, body.code], [504, 'acceptance_unknown'])
  assert.equal(headers.get('location'), `/jobs/${body.jobId}`)
  assert.match(String(body.detail), /never will be/)
  assert(ms < 2_000 + BUSY_MS, `${ms} ms`)
}

describe('a replica that is cut off from Redis', () => {
  test('never applies later what it did not accept by its answer', async (t) => {
    const { cutOff, proxy, drained } = await setUp(t)
    const thread = aThread({ text: 'the older text' })
    proxy.freeze()
    const older = await postThread(cutOff, thread)
    assertUnknown(older)
    // By now the replica knows that Redis hangs, and sends it nothing more.
    const next = await postThread(cutOff, aThread())
    assert.deepEqual([next.status, next.body.code], [503, 'queue_unavailable'])
    const newer = await postThread(sluice, {
      ...thread,
      quotes: thread.quotes.map((quote) => ({ ...quote, text: 'the newer text' })),
    })
    assert.equal(newer.status, 200)
    proxy.thaw()
    await healed(cutOff)
    await drained()
    assert.equal(
      await sluice.db.collection('sources').countDocuments({ externalId: next.externalId }),
      0,
    )
    const texts = await sluice.db.collection('quotes').distinct('text', { externalId: 'q0' })
    assert(texts.includes('the newer text') && !texts.includes('the older text'), texts.join())
    const job = await fetch(`${sluice.url}/jobs/${older.body.jobId}`, {
      headers: { 'x-api-key': sluice.key },
    })
    assert.equal(job.status, 404)
  })

  test('finds a job that was accepted and completed before the replica reached Redis again', async (t) => {
    let isLost = false
    const loseReplies = () => ({
      ...OPEN_GATE,
      toClient: (chunk: Buffer) => (isLost ? Buffer.alloc(0) : chunk),
    })
    const { cutOff, proxy, drained } = await setUp(t, loseReplies)
    isLost = true
    const thread = aThread()
    const posted = await postThread(cutOff, thread)
    assertUnknown(posted)
    await drained()
    assert.equal(
      await sluice.db.collection('sources').countDocuments({ externalId: thread.externalId }),
      1,
    )
    await proxy.shut()
    isLost = false
    await proxy.reopen()
    const find = () =>
      fetch(`${sluice.url}/jobs/${posted.body.jobId}`, { headers: { 'x-api-key': sluice.key } })
    await until('the job is found', async () => (await find()).status === 200)
    const { state, result } = JSON.parse(await (await find()).text())
    assert.deepEqual(
      [state, result.source.externalId, result.quotes.length],
      ['completed', thread.externalId, 3],
    )
  })

  test('finds a job whose caller stopped waiting for it meanwhile', async (t) => {
    const { cutOff, proxy, left, drained } = await setUp(t)
    const signalWorker = (name: NodeJS.Signals) => sluice.workers[0]?.signal(name)
    signalWorker('SIGSTOP')
    t.onTestFinished(() => void signalWorker('SIGCONT'))
    const posting = postThread(cutOff, aThread(), 'wait=3')
    await until('the job is accepted', async () => (await left()) > 0)
    // Redis answers in order: after this answer the replica knows of the acceptance.
    assert.equal((await postThread(cutOff, aThread(), 'respond-async')).status, 202)
    proxy.freeze()
    const { status, headers } = await posting
    assert.equal(status, 202)
    signalWorker('SIGCONT')
    await drained()
    proxy.thaw()
    const find = async () => {
      const answer = await fetch(new URL(headers.get('location') ?? '', sluice.url), {
        headers: { 'x-api-key': sluice.key },
      })
      return JSON.parse(await answer.text())
    }
    await until('the job is found', async () => (await find()).state === 'completed')
  })

  test('refuses no import whose jobs it has enqueued', async (t) => {
    const loseRecord = () => ({
      ...OPEN_GATE,
      toServer: (chunk: Buffer) => (chunk.includes('unfinishedMs') ? Buffer.alloc(0) : chunk),
    })
    const { cutOff, drained } = await setUp(t, loseRecord)
    const thread = aThread()
    const answer = await fetch(`${cutOff.url}/sources:batch`, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-ndjson',
        'x-api-key': cutOff.key,
        prefer: 'respond-async',
      },
      body: JSON.stringify(thread),
    })
    const { code } = JSON.parse(await answer.text())
    assert.deepEqual([answer.status, code], [504, 'acceptance_unknown'])
    assert.match(answer.headers.get('location') ?? '', /^\/batches\//)
    await drained()
    assert.equal(
      await sluice.db.collection('sources').countDocuments({ externalId: thread.externalId }),
      1,
    )
  })

  test('gives the items of its imports the same answer', async (t) => {
    const { cutOff, proxy, drained } = await setUp(t)
    const thread = aThread()
    proxy.freeze()
    const began = performance.now()
    const answer = await fetch(`${cutOff.url}/sources:batch`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson', 'x-api-key': cutOff.key },
      body: JSON.stringify(thread),
    })
    const [item = ''] = (await answer.text()).split('\n')
    assert(performance.now() - began < 2_500 + BUSY_MS)
    const { status, problem } = JSON.parse(item)
    assert.deepEqual(
      [status, problem.code, typeof problem.jobId],
      [504, 'acceptance_unknown', 'string'],
    )
    proxy.thaw()
    await healed(cutOff)
    await drained()
    assert.equal(
      await sluice.db.collection('sources').countDocuments({ externalId: thread.externalId }),
      0,
    )
  })
})
