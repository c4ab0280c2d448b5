import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { queueKeys } from '@sluice/queue'
import { requiredUrl, startProcess, testQueueName } from '@sluice/test-support'
import { Redis } from 'ioredis'
import { test } from 'vitest'
import { openOperator } from '../support/open-operator.ts'
import { openQueue } from '../support/open-queue.ts'
import { openPrivateServer } from '../support/private-server.ts'
import { runSluice } from '../support/run-sluice.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { createCaller } from './support/caller.ts'
import { sendToEveryRoute } from './support/every-route.ts'
import { acceptedIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

test('all processes work with the users of Redis that docs/operate/redis.md creates, and nobody else does', async (t) => {
  const manual = await readFile(new URL('../../docs/operate/redis.md', import.meta.url), 'utf8')
  const QUEUE = testQueueName()
  const server = await openPrivateServer('Redis', requiredUrl('MONGODB_URL'))
  t.onTestFinished(() => server.end())
  const admin = new Redis(server.url)
  t.onTestFinished(() => admin.disconnect())
  const users = Array.from(
    manual.matchAll(/^ACL (SETUSER (\w+) .*)$/gm),
    ([, command = '', name]) => ({
      command,
      name,
    }),
  )
  assert.deepEqual(
    users.map(({ name }) => name),
    ['sluice', 'admin', 'default'],
  )
  for (const { command } of users)
    await admin.call('ACL', command.replace('{ingest}', queueKeys(QUEUE).prefix).split(' '))
  const stranger = new Redis(server.url, { lazyConnect: true, retryStrategy: null })
  stranger.on('error', () => {})
  await assert.rejects(stranger.ping())
  stranger.disconnect()
  const url = new URL(server.url)
  Object.assign(url, { username: 'sluice', password: 'PASSWORD' })
  const sluice = await startSluice(t, { redisUrl: url.href, settings: { QUEUE } })
  const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', sluice.settings)
  await dashboard.line(({ msg }) => msg === 'dashboard.listening')

  const { key, readVerdict } = await openOperator(sluice)
  const readyStatus = async () => (await fetch(`${sluice.url}/readyz`)).status
  assert.equal(await readyStatus(), 200)
  for (const command of ['evalsha', 'linsert']) {
    await admin.call('ACL', 'SETUSER', 'sluice', `-${command}`)
    await until('the API to be not ready', async () => (await readyStatus()) === 503)
    await admin.call('ACL', 'SETUSER', 'sluice', `+${command}`)
    await until('the API to be ready again', async () => (await readyStatus()) === 200)
  }
  // Only workers send it, and only within a script.
  await admin.call('ACL', 'SETUSER', 'sluice', '-rpop')
  await until('the verdict to name the command', async () =>
    /Redis refuses commands of the worker .*RPOP/.test((await readVerdict()).join()),
  )
  await admin.call('ACL', 'SETUSER', 'sluice', '+rpop')
  await admin.call('ACL', 'LOG', 'RESET')

  const importer = createCaller({ url: sluice.url, key: sluice.key })
  const operator = createCaller({ url: sluice.url, key })
  const { source } = storedIn(await importer.post(someThread(), { 'idempotency-key': 'once' }))
  acceptedIn(await importer.post(someThread(), { prefer: 'respond-async' }))
  await importer.postImport(JSON.stringify(someThread()))
  await importer.postImport(JSON.stringify(someThread()), { prefer: 'respond-async' })
  await sendToEveryRoute({ importer, operator }, source.id)
  await openQueue(t, sluice.settings).drained()
  for (const process of [...sluice.workers, sluice.api, dashboard]) {
    process.signal('SIGTERM')
    assert.deepEqual(await process.ended, { code: 0, signal: null })
  }
  const refused = Object(await admin.call('ACL', 'LOG')).map((entry: unknown) => String(entry))
  assert.deepEqual(
    refused.filter((entry: string) => entry.includes('sluice')),
    [],
  )
  await admin.call('ACL', 'SETUSER', 'sluice', '-hget')
  const rights =
    /^ {2}FAULT {2}Redis refuses commands: NOPERM its .*HGET.*\n {4}fix: .* acl setuser/m
  assert.match((await runSluice(sluice, 'doctor')).stdout, rights)
  await admin.call('ACL', 'SETUSER', 'sluice', '+hget', '-info')
  const { stdout } = await runSluice(sluice, 'doctor')
  assert.match(stdout, /^ {2}FAULT {2}Redis at .* refuses a command: NOPERM .*info/m)
})
