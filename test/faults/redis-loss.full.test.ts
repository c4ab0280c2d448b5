import assert from 'node:assert/strict'
import type { Status } from '@sluice/contract'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { requiredUrl } from '@sluice/test-support'
import { test } from 'vitest'
import { openOperator } from '../support/open-operator.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { openPrivateServer } from '../support/private-server.ts'
import { runSluice } from '../support/run-sluice.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

test('a Redis that went back to an earlier state or lost its data is told, with what to post again, and pauses stay', {
  timeout: 120_000,
}, async (t) => {
  const server = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
  t.onTestFinished(server.end)
  const sluice = await startSluice(t, { redisUrl: server.url })
  const { key } = await openOperator(sluice)
  const admin = (url: string, path: string, method = 'GET') =>
    fetch(`${url}/admin/${path}`, { method, headers: { 'x-api-key': key } })
  const overview = async (url: string): Promise<Status> =>
    JSON.parse(await (await admin(url, 'overview')).text())
  const accept = async (number: number) => {
    for (let posted = 0; posted < number; ) {
      const { status } = await postThread(sluice, aThread(), 'respond-async')
      if (status === 202) posted += 1
    }
  }
  const redis = connectRetrying({ redisUrl: server.url, queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const noted = (threads: number, after = -1) =>
    until('a mark', async () => {
      const note = Object(await sluice.db.collection('layout').findOne({ mark: { $gt: 0 } }))
      const mark = Number(await redis.get(`${queueKeys(sluice.settings.QUEUE ?? '').base}mark`))
      return note.mark === mark && note.before > after && note.threads === threads ? mark : 0
    })

  assert.equal(
    (await admin(sluice.url, 'lanes/bulk:pause?why=upgrade&seconds=3600', 'POST')).status,
    200,
  )
  await accept(5)
  const { until: end } = (await overview(sluice.url)).paused.bulk ?? {}
  assert(end !== undefined)
  const copied = await noted(5)
  // A Redis that was killed has all but its last second.
  await server.keepCopy()
  await accept(2)
  await noted(7, copied)
  assert.equal(await overview(sluice.url).then(({ redisLoss }) => redisLoss), undefined)

  await server.restoreCopy()
  const back = await sluice.api.line(({ msg }) => msg === 'redis.lost')
  assert.equal(back.threads, 7)
  assert(Date.parse(String(back.since)) <= copied)
  const [first] = (await overview(sluice.url)).verdict ?? []
  assert.match(
    first?.text ?? '',
    /^Redis went back to its state of .* UTC: 7 accepted threads waited; post again what/,
  )

  // The loss is found at the next start, too: nothing else knows of it.
  sluice.api.signal('SIGTERM')
  await sluice.api.ended
  await redis.flushall()
  const found = await runSluice(sluice, 'doctor')
  assert.match(found.stdout, /FAULT {2}Redis lost its data at .*; post again what got a 202 since /)
  assert.equal(found.code, 1)
  const { api, url } = await sluice.startApi()
  await api.line(({ msg }) => msg === 'redis.lost')
  const { verdict, paused } = await until('an overview', async () => {
    const status = await overview(url)
    return status.redisLoss && status
  })
  assert.deepEqual([paused.bulk?.why, paused.bulk?.until], ['upgrade', end])
  assert(
    verdict?.some(({ text }) =>
      /^Redis lost its data at .* UTC: \d+ accepted threads waited/.test(text),
    ),
  )
})
