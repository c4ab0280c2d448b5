import { createKey } from '@sluice/credentials/keys'
import { createSessions } from '@sluice/credentials/sessions'
import { connectRetrying, LAYOUT } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { expect, test } from 'vitest'
import { mongodbCan } from '../support/mongodb-can.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { createCaller } from './support/caller.ts'
import { describeRedis } from './support/describe-redis.ts'
import { jobPathIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

// If the description changed and an older release could not read what is stored now, raise LAYOUT
// as ADR 18 says: the test then writes a file for the new number. If not, write the file again:
// `npx -y pnpm@12 test:full redis-layout -u`.
test('whatever is kept in Redis has the form that its layout number stands for', async (t) => {
  t.skip(!mongodbCan.refuseByValidator)
  const sluice = await startSluice(t)
  const [importer, operator] = [
    createCaller(sluice),
    createCaller({
      url: sluice.url,
      key: (await createKey(sluice.db, { role: 'operator', name: 'on call' })).key,
    }),
  ]
  await sluice.db.createCollection('quotes', { validator: { speaker: { $ne: 'refused' } } })
  const refused = (externalId: string) =>
    someThread({ externalId, quotes: [{ text: 'a', speaker: 'refused' }] })
  const post = (path: string, body: unknown) =>
    operator.send(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body })

  // Completed, claimed, failed and imported.
  const trace = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }
  storedIn(
    await importer.post(someThread({ externalId: 'one' }), { ...trace, 'idempotency-key': 'a' }),
  )
  const lines = [someThread({ externalId: 'two' }), refused('three'), '{'].map((line) =>
    JSON.stringify(line),
  )
  await importer.postImport(JSON.stringify(someThread({ externalId: 'seven' })))
  const [failed, retried, imported] = await Promise.all([
    importer.post(refused('four'), { prefer: 'respond-async' }),
    importer.post(refused('eight'), { prefer: 'respond-async' }),
    importer.postImport(lines.join('\n'), { prefer: 'respond-async' }),
  ])
  const path = imported.headers.get('location') ?? ''
  for (const job of [failed, retried]) await importer.get(jobPathIn(job), { prefer: 'wait=30' })
  await until('the import has ended', async () =>
    /"completed"/.test((await importer.get(path)).text),
  )
  await post('/admin/jobs:retry', { reason: 'nothing has this reason' })
  // Waiting, in both lanes.
  for (const lane of ['interactive', 'bulk']) await post(`/admin/lanes/${lane}:pause`, undefined)
  for (const [externalId, wait] of Object.entries({ five: 0, six: 1 }))
    await importer.post(someThread({ externalId }), {
      prefer: `wait=${wait}`,
      'idempotency-key': externalId,
    })
  const opened = await post('/admin/jobs:retry', {
    ids: [jobPathIn(retried).replace('/jobs/', '')],
  })
  const operation = opened.headers.get('location') ?? ''
  await until('the retry', async () => /"completed"/.test((await operator.get(operation)).text))

  const keys = queueKeys(sluice.settings.QUEUE ?? '')
  const redis = connectRetrying({ redisUrl: sluice.settings.REDIS_URL ?? '', queue: '' }, () => {})
  t.onTestFinished(() => redis.disconnect())
  const sessions = createSessions(redis, keys)
  await sessions.createLink({ role: 'viewer', by: 'ada' })
  await sessions.open({ role: 'operator', by: 'ada', keyId: 'k' })

  const described = await describeRedis(redis, sluice.settings.QUEUE ?? '')
  await expect(`${described.join('\n')}\n`).toMatchFileSnapshot(`redis-layout-${LAYOUT.writes}.txt`)
})
