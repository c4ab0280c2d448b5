import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '@sluice/cli/test-support'
import type { CountsBy, OperationKind, Status } from '@sluice/contract'
import { createKey, shortKeyId } from '@sluice/credentials/keys'
import type { SourceDocument } from '@sluice/store'
import { sourceIdOf } from '@sluice/store/ids'
import { beforeSuite } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { mongodbCan } from '../support/mongodb-can.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { type Caller, createCaller, type Reply } from './support/caller.ts'
import {
  acceptedIn,
  failedJobIn,
  jobIn,
  jobPathIn,
  operationIn,
  pageIn,
  problemIn,
  storedIn,
} from './support/read-reply.ts'
import { someThread } from './support/some-thread.ts'
import { readMetric } from './support/until-metric.ts'

const JSON_BODY = { 'content-type': 'application/json' }

describe('failed jobs and their operators', () => {
  let sluice: TestSluice
  let importer: Caller
  let operator: Caller
  let operatorKey: string
  let operatorId: string
  /** An import of three threads, of which MongoDB refuses the second. */
  let importId: string | undefined
  /** The paths of jobs that failed, by the externalId of their thread. */
  let paths: Map<string, string>

  beforeSuite(async (t) => {
    sluice = await startSluice(t, { settings: { DASHBOARD_URL: 'https://board.example/' } })
    importer = createCaller(sluice)
    const { key, record } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
    operatorKey = key
    operatorId = shortKeyId(record.id)
    operator = createCaller({ url: sluice.url, key: operatorKey })
    if (mongodbCan.refuseByValidator)
      await sluice.db.createCollection('quotes', { validator: { speaker: { $ne: 'refused' } } })
    const lines = ['fine', 'refused', 'also fine'].map((speaker) =>
      JSON.stringify(
        someThread({ externalId: speaker, quotes: [{ externalId: 'q', text: 'a', speaker }] }),
      ),
    )
    const posted = await importer.postImport(lines.join('\n'), { prefer: 'respond-async' })
    importId = posted.headers.get('location')?.replace('/batches/', '')
    const ids = [
      'retried',
      'older',
      'discarded',
      'discarded by command',
      'retried by command',
      'looked at',
    ]
    for (const id of ids) await breakStore(id)
    const replies = await Promise.all(
      ids.map((externalId) => importer.post(broken(externalId), { prefer: 'respond-async' })),
    )
    replies.forEach(acceptedIn)
    paths = new Map(ids.map((id, at) => [id, jobPathIn(replies[at] as Reply)]))
    const jobs = await Promise.all(
      [...paths.values()].map((path) => importer.get(path, { prefer: 'wait=30' })),
    )
    assert.deepEqual(
      jobs.map((reply) => jobIn(reply).state),
      ids.map(() => 'failed'),
    )
    for (const id of ids) await mendStore(id)
  })

  const broken = (externalId: string) =>
    someThread({ externalId, title: 'as it was', description: 'given once' })
  const sourceId = (externalId: string) => sourceIdOf('acme', { service: 'slack', externalId })
  /** Sluice never writes such a document, so every job for it fails. */
  const breakStore = (id: string) =>
    sluice.db.collection<{ _id: string }>('sources').insertOne({ _id: sourceId(id) })
  const mendStore = (id: string) =>
    sluice.db.collection<{ _id: string }>('sources').deleteOne({ _id: sourceId(id) })
  const idOf = (externalId: string) => paths.get(externalId)?.replace('/jobs/', '') ?? ''

  async function operate(kind: OperationKind, body: unknown) {
    const opened = await operator.send(`/admin/jobs:${kind}`, {
      method: 'POST',
      headers: JSON_BODY,
      body,
    })
    const { id, state } = operationIn(opened, 202)
    assert.equal(state, 'waiting')
    assert.equal(opened.headers.get('location'), `/admin/operations/${id}`)
    const completed = await until(`the operation ${kind}`, async () => {
      const operation = operationIn(await operator.get(`/admin/operations/${id}`), 200)
      return operation.state === 'completed' && operation
    })
    assert(completed)
    return completed
  }

  test('are listed with tenant, name, tries and reason, and found by a filter', async () => {
    const { jobs } = pageIn(await operator.get('/admin/jobs?tenant=acme&externalId=looked%20at'))
    assert.deepEqual(
      jobs.map(({ id, tenant, name, attempts, lane }) => ({ id, tenant, name, attempts, lane })),
      [
        {
          id: idOf('looked at'),
          tenant: 'acme',
          name: 'slack/looked at',
          attempts: 5,
          lane: 'bulk',
        },
      ],
    )
    assert.match(jobs[0]?.reason ?? '', /^Sluice did not write the document "\S+" of sources/)
    const errors = sluice.workers.flatMap(({ log }) => log.filter(({ level }) => level === 'error'))
    assert.deepEqual([...new Set(errors.map(({ msg }) => msg))], ['job.failed'])
    assert.deepEqual(pageIn(await operator.get('/admin/jobs?tenant=globex')).jobs, [])
    const first = pageIn(await operator.get('/admin/jobs?limit=2'))
    const second = pageIn(await operator.get(`/admin/jobs?limit=2&after=${first.next}`))
    const ids = [...first.jobs, ...second.jobs].map(({ id }) => id)
    assert.equal(new Set(ids).size, 4)
  })

  test('are counted, with their threads and the codes of MongoDB', async (t) => {
    t.skip(!mongodbCan.refuseByValidator)
    const [worker] = sluice.workers
    assert(worker)
    const quotes = [{ externalId: 'q', text: 'a', speaker: 'fine' }]
    for (const title of ['Another', 'Another']) {
      const { status } = await importer.post(someThread({ externalId: 'fine', title, quotes }))
      assert.equal(status, 200)
    }
    // A new count of workers does not compile until it is caused here.
    const expected: Record<CountsBy<'worker'>, number> = {
      'stored:created': 2,
      'stored:updated': 1,
      'stored:unchanged': 1,
      failed: 7,
    }
    const counted = await until('the last posts and failures are counted', async () => {
      const { lastHour }: Status = JSON.parse((await operator.get('/admin/overview')).text)
      const { stored, ...others } = lastHour
      const byOutcome = Object.entries(stored).map(([outcome, of]) => [`stored:${outcome}`, of])
      return (
        stored.unchanged > 0 &&
        others.failed >= 7 && { ...others, ...Object.fromEntries(byOutcome) }
      )
    })
    assert.deepEqual({ ...counted, ...expected }, counted)
    assert((await readMetric(worker, 'sluice_mongodb_errors_total', { code: '121' })) >= 1)
    const bulk = { lane: 'bulk', state: 'failed' }
    assert((await readMetric(sluice.api, 'sluice_threads', bulk)) >= 6)
    assert((await readMetric(sluice.api, 'sluice_oldest_job_seconds', bulk)) > 0)
  })

  test('are shown with every attempt\u2019s stack and the payload, which their importer never sees', async () => {
    const job = failedJobIn(await operator.get(`/admin/jobs/${idOf('looked at')}`))
    assert.equal(job.stack.length, 5)
    for (const stack of job.stack) assert.match(stack, /\n\s+at /)
    assert.equal(Object(job.payload).threads[0].source.title, 'as it was')
    const { text } = await importer.get(paths.get('looked at') ?? '')
    assert.doesNotMatch(text, /stack|\.ts|node_modules/)
    assert.equal(text.includes(job.reason), false)
  })

  test('names the thread of an import that failed, the document, and why MongoDB refused it', async (t) => {
    t.skip(!mongodbCan.refuseByValidator)
    const id = await until('the job has failed', async () => {
      const { jobs } = pageIn(await operator.get('/admin/jobs?externalId=refused'))
      return jobs[0]?.id
    })
    const job = failedJobIn(await operator.get(`/admin/jobs/${id}`))
    const document = `collection quotes, _id "${sourceId('refused')}`
    assert.match(
      job.reason,
      /^threads\[1\] "slack\/refused": .*validation.* \(code 121 DocumentValidationFailure, /,
    )
    assert.ok(job.reason.includes(document), job.reason)
    assert.deepEqual(
      job.failedThreads.map(({ place, service, externalId }) => ({ place, service, externalId })),
      [{ place: 1, service: 'slack', externalId: 'refused' }],
    )
    assert.equal(job.tries.length, 5)
    assert.doesNotMatch(job.stack[0] ?? '', /partlyStored/)
    const [worker] = sluice.workers
    const { reason, ...logged } =
      (await worker?.line(({ msg, jobId }) => msg === 'job.failed' && jobId === id)) ?? {}
    assert.equal(reason, job.reason)
    assert.deepEqual([logged.importId, logged.failedThreads], [importId, ['slack/refused']])
    assert.equal(logged.page, `https://board.example/jobs/${id}`)
  })

  test('a key of one role opens nothing of the other', async () => {
    const body = { filter: {} }
    for (const path of [
      '/admin/jobs',
      `/admin/jobs/${idOf('looked at')}`,
      '/admin/operations',
      '/admin/operations/x',
    ]) {
      problemIn(await importer.get(path), 403, 'operator_only')
    }
    for (const path of ['/admin/jobs:retry', '/admin/jobs:discard']) {
      problemIn(
        await importer.send(path, { method: 'POST', headers: JSON_BODY, body }),
        403,
        'operator_only',
      )
    }
    problemIn(await operator.post(someThread()), 403, 'importer_only')
    problemIn(
      await operator.send('/sources:batch', { method: 'POST', headers: JSON_BODY, body: [] }),
      403,
      'importer_only',
    )
    problemIn(await operator.get(paths.get('looked at') ?? ''), 403, 'importer_only')
    problemIn(await createCaller({ url: sluice.url }).get('/admin/jobs'), 403, 'api_key_invalid')
  })

  test('a viewer reads ids, and reasons without values, and changes nothing', async () => {
    const { key } = await createKey(sluice.db, { role: 'viewer', name: 'looks' })
    const viewer = createCaller({ url: sluice.url, key })
    const [job] = pageIn(await viewer.get('/admin/jobs?externalId=looked%20at')).jobs
    assert.deepEqual([job?.id, job?.reason], [idOf('looked at'), job?.reasonGroup])
    const shown = await viewer.get(`/admin/jobs/${idOf('looked at')}`)
    const { payload, stack, tries } = JSON.parse(shown.text)
    assert.deepEqual([payload, stack, tries.length], [null, [], 5])
    assert.doesNotMatch(shown.text, /as it was/)
    const { hits } = JSON.parse((await viewer.get('/admin/find?q=looked%20at')).text)
    assert.deepEqual([hits[0].id, hits[0].reason], [job?.id, job?.reasonGroup])
    problemIn(await viewer.get('/admin/jobs?reason=title'), 403, 'operator_only')
    problemIn(await viewer.get('/admin/find?q=a&reason=title'), 403, 'operator_only')
    problemIn(await viewer.get('/admin/job-groups?reason=title'), 403, 'operator_only')
    const body = { ids: [idOf('looked at')] }
    problemIn(
      await viewer.send('/admin/jobs:discard', { method: 'POST', headers: JSON_BODY, body }),
      403,
      'operator_only',
    )
    problemIn(await viewer.post(someThread()), 403, 'importer_only')
  })

  test('a malformed question is a fault, and nothing is done', async () => {
    for (const path of [
      '/admin/jobs?tennant=acme',
      '/admin/jobs?limit=1000',
      '/admin/jobs?since=yesterday',
    ]) {
      problemIn(await operator.get(path), 400, 'request_invalid')
    }
    for (const body of [{}, { ids: ['a'], filter: {} }, { filter: { tennant: 'acme' } }]) {
      const sent = { method: 'POST', headers: JSON_BODY, body }
      problemIn(await operator.send('/admin/jobs:discard', sent), 400, 'request_invalid')
    }
    problemIn(await operator.get('/admin/jobs/failed'), 404, 'job_unknown')
    problemIn(await operator.get('/admin/operations/failed'), 404, 'operation_unknown')
  })

  test('are retried by a filter once the cause is fixed, and succeed', async () => {
    const { id, total, examined, done } = await operate('retry', {
      filter: { externalId: 'retried', service: 'slack' },
    })
    assert.deepEqual([done, examined], [1, total])
    const { operations } = JSON.parse((await operator.get('/admin/operations')).text)
    assert.equal(operations[0].id, id)
    assert.match(operations[0].filter.until, /^2/)
    assert.equal(operations[0].by, operatorId)
    const job = jobIn(await importer.get(paths.get('retried') ?? '', { prefer: 'wait=20' }))
    assert.deepEqual([job.state, job.result?.source.outcome], ['completed', 'created'])
    assert.deepEqual(pageIn(await operator.get('/admin/jobs?externalId=retried')).jobs, [])
  })

  test('a request that is retried after a newer one never replaces what the newer one gave', async () => {
    const newer = storedIn(
      await importer.post(someThread({ externalId: 'older', title: 'as it is now' })),
    )
    assert.equal(newer.source.title, 'as it is now')
    await operate('retry', { ids: [idOf('older')] })
    const job = jobIn(await importer.get(paths.get('older') ?? '', { prefer: 'wait=20' }))
    assert.equal(job.state, 'completed')
    const stored = await sluice.db
      .collection<SourceDocument>('sources')
      .findOne({ _id: sourceId('older') })
    assert.deepEqual([stored?.title, stored?.description], ['as it is now', 'given once'])
  })

  test('are discarded, and are gone for their importer too', async () => {
    assert.equal((await operate('discard', { ids: [idOf('discarded')] })).done, 1)
    problemIn(await importer.get(paths.get('discarded') ?? ''), 404, 'job_unknown')
    problemIn(await operator.get(`/admin/jobs/${idOf('discarded')}`), 404, 'job_unknown')
    assert.equal((await operate('discard', { ids: [idOf('discarded')] })).done, 0)
  })

  const withKey = (key?: string) => ({
    folder: tmpdir(),
    env: key === undefined ? {} : { SLUICE_API_KEY: key },
  })

  test('are listed, shown, retried and discarded by the command, with a key that is on no command line', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-jobs-'))
    t.onTestFinished(() => rm(folder, { recursive: true }))
    const keyFile = join(folder, 'key')
    await writeFile(keyFile, `${operatorKey}\n`)
    const command = (...args: string[]) =>
      runCommand(withKey(), 'jobs', [...args, '--url', sluice.url, '--key-file', keyFile])

    const id = idOf('retried by command')
    const [list, shown, many, refused] = await Promise.all([
      command('list', '--external-id', 'discarded by command'),
      command('show', id, '--payload'),
      command('discard', '--all'),
      runCommand(withKey(sluice.key), 'jobs', ['list', '--url', sluice.url]),
    ])
    assert.match(
      list.stdout,
      /^ID .*REASON\n[0-9a-f-]{36} .* acme +slack\/discarded by command +5 .*\n$/,
    )
    assert.match(shown.stdout, /^tenant +acme$.*^attempt 5:$.*^payload:$.*"title": "as it was"/ms)
    assert.deepEqual([many.code, many.stdout], [1, ''])
    assert.match(many.stderr, /Nothing was discarded. Add --yes/)
    assert.match(
      refused.stderr,
      /^error: The key is valid, but it is not an operator’s\. .* \(403 operator_only\)$/m,
    )

    const [retried, discarded] = await Promise.all([
      command('retry', id),
      command('discard', '--external-id', 'discarded by command'),
    ])
    assert.deepEqual([retried.stdout, discarded.stdout], ['Retried 1 job.\n', 'Discarded 1 job.\n'])
    assert.equal(jobIn(await importer.get(`/jobs/${id}`, { prefer: 'wait=20' })).state, 'completed')
    problemIn(await importer.get(paths.get('discarded by command') ?? ''), 404, 'job_unknown')
  })

  test('a lane is paused by a command, with who did it, and its jobs wait until it is resumed', async () => {
    const { key } = await createKey(sluice.db, { role: 'viewer', name: 'looks on' })
    const path = '/admin/lanes/bulk:resume'
    const refused = await createCaller({ url: sluice.url, key }).send(path, { method: 'POST' })
    problemIn(refused, 403, 'operator_only')
    problemIn(
      await operator.send('/admin/lanes/fast:pause', { method: 'POST' }),
      404,
      'route_unknown',
    )
    const paused = await runCommand(withKey(operatorKey), 'pause', ['bulk', '--url', sluice.url])
    assert.match(paused.stdout, /^The bulk lane is paused\./)
    const again = await runCommand(withKey(operatorKey), 'pause', [
      'bulk',
      '--why',
      'too',
      '--url',
      sluice.url,
    ])
    assert.match(
      again.stdout,
      new RegExp(
        `^The bulk lane was paused already: .* by ${operatorId} \\(${operatorId}: too\\)\\.`,
      ),
    )
    const status = await runCommand(withKey(operatorKey), 'status', ['--url', sluice.url])
    assert.match(
      status.stdout,
      new RegExp(`^The bulk lane has been paused for \\d+ s by ${operatorId} .*: too\\)\\.$`, 'm'),
    )
    assert.equal(await readMetric(sluice.api, 'sluice_lane_paused', { lane: 'bulk' }), 1)
    const job = jobPathIn(
      await importer.post(someThread({ externalId: 'waits' }), { prefer: 'respond-async' }),
    )
    storedIn(await importer.post(someThread({ externalId: 'does not wait' })))
    assert.equal(jobIn(await importer.get(job)).state, 'waiting')
    const resumed = operationIn(await operator.send(path, { method: 'POST' }), 200)
    assert.deepEqual([resumed.kind, resumed.lane, resumed.by], ['resume', 'bulk', operatorId])
    assert.equal(jobIn(await importer.get(job, { prefer: 'wait=20' })).state, 'completed')
    const { operations } = JSON.parse((await operator.get('/admin/operations')).text)
    // It ends by itself.
    problemIn(
      await operator.send('/admin/lanes/bulk:pause?seconds=0', { method: 'POST' }),
      400,
      'request_invalid',
    )
    problemIn(
      await operator.send('/admin/lanes/bulk:resume?seconds=1', { method: 'POST' }),
      400,
      'request_invalid',
    )
    const ending = await runCommand(withKey(operatorKey), 'pause', [
      'bulk',
      '--for',
      '1s',
      '--url',
      sluice.url,
    ])
    assert.match(ending.stdout, /^The bulk lane is paused\. The pause ends by itself at \d{4}-/)
    const ends = jobPathIn(
      await importer.post(someThread({ externalId: 'ends' }), { prefer: 'respond-async' }),
    )
    assert.equal(jobIn(await importer.get(ends, { prefer: 'wait=20' })).state, 'completed')
    assert.equal(await readMetric(sluice.api, 'sluice_lane_paused', { lane: 'bulk' }), 0)
    assert.deepEqual(
      operations.slice(0, 2).map(({ kind }: { kind: string }) => kind),
      ['resume', 'pause'],
    )
  })
})
