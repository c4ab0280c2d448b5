import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import { runCommand } from '@sluice/cli/test-support'
import type { FindAnswer, Hit, Status } from '@sluice/contract'
import { createKey, revokeKey, rotateKey } from '@sluice/credentials/keys'
import { beforeSuite } from '@sluice/test-support'
import { beforeAll, describe, test } from 'vitest'
import { metricsOf } from '../attacks/support/unharmed.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { type Caller, createCaller } from './support/caller.ts'
import { jobPathIn, problemIn, storedIn } from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'

describe('a leaked key can be followed', () => {
  let sluice: TestSluice
  let operatorKey: string
  let operator: Caller
  beforeSuite(async (t) => {
    sluice = await startSluice(t)
  })
  beforeAll(async () => {
    operatorKey = (await createKey(sluice.db, { role: 'operator', name: 'on call' })).key
    operator = createCaller({ url: sluice.url, key: operatorKey })
  })

  const newKey = async (name: string, expiresAt?: Date) => {
    const { key, record } = await createKey(sluice.db, { tenant: 'leaky', name, expiresAt })
    return { keyId: record.id.slice(0, 12), caller: createCaller({ url: sluice.url, key }) }
  }
  const read = async <Answer>(path: string): Promise<Answer> =>
    JSON.parse((await operator.get(path)).text)
  const answered = (requestId: string) =>
    sluice.api.line((line) => line.msg === 'request.answered' && line.requestId === requestId)
  const sendAs = (caller: Caller, id: string) => caller.post(someThread(), { 'x-request-id': id })
  const lineOf = ({ tenant, keyId, keyRefused, status }: Record<string, unknown>) => [
    status,
    tenant,
    keyId,
    keyRefused,
  ]

  test('to what it posted: in the log, in the jobs, and by a look-up', async () => {
    const { keyId, caller } = await newKey('followed')
    storedIn(await sendAs(caller, 'followed'))
    assert.deepEqual(lineOf(await answered('followed')), [200, 'leaky', keyId, undefined])
    assert.equal(JSON.parse((await caller.get('/limits')).text).tenant, 'leaky')
    const found = async (q: string) => (await read<FindAnswer>(`/admin/find?q=${q}`)).hits
    const jobPath = jobPathIn(await caller.post(someThread(), { prefer: 'respond-async' }))
    const jobId = jobPath.replace('/jobs/', '')
    const importId = crypto.randomUUID()
    await caller.postImport(`${JSON.stringify(someThread())}\n`, { 'import-id': importId })
    const keyOf = ({ kind, keyId }: Hit) => `${kind} ${keyId}`
    await until('all jobs are listed', async () => (await found(keyId)).length === 3)
    assert.deepEqual((await found(keyId)).map(keyOf), Array(3).fill(`job ${keyId}`))
    assert.deepEqual((await found(jobId)).map(keyOf), [`job ${keyId}`])
    assert.deepEqual((await found(importId)).map(keyOf), [`import ${keyId}`])
    const shown = await runCommand(
      { folder: tmpdir(), env: { SLUICE_API_KEY: operatorKey } },
      'jobs',
      ['show', jobId, '--url', sluice.url],
    )
    assert.match(shown.stdout, new RegExp(`key ${keyId}`))
  })

  test('before it expires: a key that ends within a week is named, until it is rotated or revoked', async () => {
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000)
    const [soon] = await Promise.all([
      newKey('soon', inDays(6.9)),
      newKey('later', inDays(7.1)),
      newKey('never'),
    ])
    const { keyId } = await newKey('rotated', inDays(3))
    await rotateKey(sluice.db, keyId, { overlapSeconds: 60, expiresAt: inDays(90) })
    const expiring = async () =>
      (await read<Status>('/admin/overview')).expiringKeys?.map((key) => key.keyId)
    const isListed = (keys: unknown) => isDeepStrictEqual(keys, [soon.keyId])
    await until('only the key that ends soon is listed', async () => isListed(await expiring()))
    await revokeKey(sluice.db, soon.keyId)
  })

  test('to who still uses it: a refused key is named to operators, and counted', async () => {
    const revoked = await newKey('revoked')
    const expired = await newKey('expired', new Date(Date.now() + 2_000))
    storedIn(await expired.caller.post(someThread()))
    await revokeKey(sluice.db, revoked.keyId)
    for (const { caller } of [revoked, expired])
      await until(
        'the key is refused',
        async () => (await caller.post(someThread())).status === 403,
      )

    const own = problemIn(await sendAs(revoked.caller, 'revoked'), 403, 'api_key_invalid')
    problemIn(await sendAs(expired.caller, 'expired'), 403, 'api_key_invalid')
    const guess = createCaller({ url: sluice.url, key: `slc_${'0'.repeat(36)}` })
    const { requestId: _own, ...same } = problemIn(
      await sendAs(guess, 'guess'),
      403,
      'api_key_invalid',
    )
    assert.deepEqual({ ...same, requestId: 'revoked' }, own)
    problemIn(await sendAs(operator, 'operator'), 403, 'importer_only')
    assert.deepEqual(lineOf(await answered('revoked')), [403, 'leaky', revoked.keyId, 'revoked'])
    assert.deepEqual(lineOf(await answered('expired')), [403, 'leaky', expired.keyId, 'expired'])
    assert.deepEqual(lineOf(await answered('guess')), [403, '', undefined, undefined])
    assert.equal((await answered('operator')).keyId?.toString().length, 12)

    const tenantOf = async ({ get }: Caller) => JSON.parse((await get('/limits')).text).tenant
    assert.deepEqual(await Promise.all([revoked.caller, operator].map(tenantOf)), [
      undefined,
      undefined,
    ])

    const refused = sluice.api.log.filter(
      ({ msg, status }) => msg === 'request.answered' && status === 403,
    )
    const ofKey = (keyId: string) => refused.filter((line) => line.keyId === keyId).length
    const status = await until('the refusals are shown', async () => {
      const found = await read<Status>('/admin/overview')
      return found.lastMinutes.forbidden === refused.length ? found : undefined
    })
    const [api] = status.processes.filter(({ kind }) => kind === 'api')
    const counts = new Map(
      api?.refusedKeys?.map(({ keyId, why, requests }) => [`${why} ${keyId}`, requests]),
    )
    assert.equal(counts.get(`revoked ${revoked.keyId}`), ofKey(revoked.keyId))
    assert.equal(counts.get(`expired ${expired.keyId}`), ofKey(expired.keyId))
    const findings =
      status.verdict?.map(({ code, level, text }) => `${code} ${level}: ${text}`).join('\n') ?? ''
    assert.match(
      findings,
      new RegExp(
        `key_expired problem: The key ${expired.keyId} of leaky has expired, .* refused, `,
      ),
    )
    assert.match(
      findings,
      new RegExp(`key_revoked note: The key ${revoked.keyId} of leaky is revoked, .* refused, `),
    )
    const metrics = await metricsOf(sluice.api)
    for (const why of ['revoked', 'expired', 'unknown', 'role'])
      assert.match(
        metrics,
        new RegExp(`sluice_keys_refused_total\\{why="${why}",process="api"\\} [1-9]`),
      )

    // Nobody can repair the caller of a key that was leaked: once it is revoked, its use is no
    // problem.
    await revokeKey(sluice.db, expired.keyId)
    await until('the expired key is no problem any more', async () => {
      await expired.caller.post(someThread())
      const { verdict = [] } = await read<Status>('/admin/overview')
      return !verdict.some(({ code }) => code === 'key_expired')
    })
    // Nor is a revoked key listed as one that expires soon.
    await until(
      'no key expires soon',
      async () => (await read<Status>('/admin/overview')).expiringKeys?.length === 0,
    )
  })
})
