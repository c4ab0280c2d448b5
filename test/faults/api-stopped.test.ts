import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'vitest'
import { adminStatus } from '../support/admin-status.ts'
import { assertStored } from '../support/assert-stored.ts'
import { openQueue } from '../support/open-queue.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { openRequest } from './open-request.ts'

test.concurrent('a stopping API answers every open request, accepts no new one, and exits 0', async (t) => {
  const sluice = await startSluice(t)
  const { queue, drained } = openQueue(t, sluice.settings)
  const [worker] = sluice.workers
  worker?.signal('SIGSTOP')
  const waiting = Array.from({ length: 16 }, () => postThread(sluice, aThread()))
  await until(
    'all callers wait',
    async () => (await queue.getJobCountByTypes('wait', 'active')) === waiting.length,
  )
  const open = await openRequest(sluice, aThread())

  sluice.api.signal('SIGTERM')
  await until('new connections are refused', () => isRefused(sluice.url))
  assert.equal(await adminStatus(sluice.api, '/readyz'), 503)
  worker?.signal('SIGCONT')
  const posted = await Promise.all(waiting)
  assert.deepEqual([...new Set(posted.map(({ status }) => status))], [200])
  open.finish()
  const { status, connection } = await open.answer
  assert.deepEqual({ status, connection }, { status: 200, connection: 'close' })
  assert.deepEqual(await sluice.api.ended, { code: 0, signal: null })
  await drained()
  await assertStored(sluice.db, [...posted, open.posted])
})

test.concurrent('at the end of the grace time a caller of an unfinished job gets a 504, a caller of an unfinished body a 503, and callers that neither finish nor hang up do not keep the API from stopping', async (t) => {
  const settings = { SHUTDOWN_GRACE_SECONDS: '4' }
  const sluice = await startSluice(t, { workers: 0, settings })
  const { queue, drained } = openQueue(t, sluice.settings)
  const open = await openRequest(sluice, aThread())
  const waiting = postThread(sluice, aThread())
  await until('the job is in the queue', async () => (await queue.getWaitingCount()) === 1)
  const head = `POST /sources HTTP/1.1\r\nhost: api\r\nx-api-key: ${sluice.key}\r\n`
  const body = 'content-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n'
  const silent = await Promise.all([connected(sluice.url, ''), connected(sluice.url, head)])
  const withheld = await connected(sluice.url, head + body)
  for (const socket of [...silent, withheld]) t.onTestFinished(() => void socket.destroy())
  await once(withheld, 'data')

  sluice.api.signal('SIGTERM')
  const [refused] = await once(withheld, 'data')
  assert.match(String(refused), /^HTTP\/1.1 503 /)
  const answers = await Promise.all([waiting, open.answer])
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body.code]),
    [
      [504, 'job_pending'],
      [503, 'stopping'],
    ],
  )
  assert.deepEqual(await sluice.api.ended, { code: 0, signal: null })

  await sluice.startWorker()
  await drained()
  await assertStored(sluice.db, [answers[0]])
})

async function connected(url: string, text: string): Promise<Socket> {
  const socket = connect({
    port: Number(new URL(url).port),
    host: '127.0.0.1',
    allowHalfOpen: true,
  })
  await once(socket, 'connect')
  socket.on('error', () => {}) // the API cuts its connection in the end
  socket.write(text)
  return socket
}

async function isRefused(url: string): Promise<boolean> {
  try {
    const socket = await connected(url, '')
    socket.destroy()
    return false
  } catch {
    return true
  }
}
