import assert from 'node:assert/strict'
import { createKey, limitKey } from '@sluice/credentials/keys'
import { test } from 'vitest'
import { shareSluice } from '../support/shared-sluice.ts'
import { startSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { createCaller } from './support/caller.ts'
import { operationIn, pageIn, problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

test('a key with limits of its own is refused beyond them, while another key of its tenant is not', async (t) => {
  const { url, key, db, tenant } = await shareSluice(t)
  const limits = { quotesPerSecond: 1, burstQuotes: 2 }
  const limited = createCaller({
    url,
    key: (await createKey(db, { tenant, name: 'limited', limits })).key,
  })
  storedIn(await limited.post(someThread({ quotes: Array(60).fill({ text: 'a word' }) })))
  const refused = await limited.post(someThread())
  assert.deepEqual([refused.status, JSON.parse(refused.text).code], [429, 'rate_limited'])
  storedIn(await createCaller({ url, key }).post(someThread()))
  // The quota of all keys is far larger than the debt.
  await limitKey(db, 'limited', undefined)
  await until(
    'the key has the limits of all keys',
    async () => (await limited.post(someThread())).status === 200,
  )
})

test('operators list and retry failed jobs, and importers look threads up, while the queue is full', async (t) => {
  const settings = {
    MAX_QUEUE_THREADS: '100',
    TENANT_SHARE: '1',
    QUOTES_PER_SECOND: '2',
    BURST_QUOTES: '5000',
  }
  const { url, key, db } = await startSluice(t, { workers: 0, settings })
  const importer = createCaller({ url, key })
  const operator = createCaller({
    url,
    key: (await createKey(db, { role: 'operator', name: 'on call' })).key,
  })
  const replies = await Promise.all(
    Array.from({ length: 120 }, () => importer.post(someThread(), { prefer: 'respond-async' })),
  )
  const accepted = replies.filter(({ status }) => status === 202)
  assert.equal(accepted.length, 100)
  const policies = new Set(accepted.map(({ headers }) => headers.get('ratelimit-policy')))
  assert.deepEqual(
    [...policies],
    ['"quotes";q=5000;w=2500;sluice-unit="quotes"'],
    'the key has the limits of the settings',
  )
  problemIn(await importer.post(someThread()), 503, 'queue_full')
  assert.deepEqual(pageIn(await operator.get('/admin/jobs')).jobs, [])
  const headers = { 'content-type': 'application/json' }
  const names = { service: 'slack', externalIds: ['none'] }
  const found = await importer.send('/sources:lookup', { method: 'POST', headers, body: names })
  assert.deepEqual([found.status, found.text], [200, '{"sources":[]}'])
  const opened = await operator.send('/admin/jobs:retry', {
    method: 'POST',
    headers,
    body: { filter: {} },
  })
  const { id } = operationIn(opened, 202)
  await until('the operation is completed', async () => {
    return operationIn(await operator.get(`/admin/operations/${id}`), 200).state === 'completed'
  })
})
