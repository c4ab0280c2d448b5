import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { runCommand } from '@sluice/cli/test-support'
import type { CountsBy, Status } from '@sluice/contract'
import { createKey } from '@sluice/credentials/keys'
import { createReadHistory, createReadOverview } from '@sluice/operations'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { beforeSuite, type StartedProcess, startProcess } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { needs } from '../runner/programs.ts'
import { postSteadily } from '../support/post-steadily.ts'
import { aThread, postThread } from '../support/post-thread.ts'
import { promtool, readDocumented, startPrometheus } from '../support/start-prometheus.ts'
import { startSluice, type TestSluice, untilKeyIsKnown } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'
import { createCaller } from './support/caller.ts'
import { metricsOf, readMetric } from './support/until-metric.ts'

describe('the metrics of a running Sluice', () => {
  let sluice: TestSluice
  let processes: Record<string, StartedProcess>
  beforeSuite(async (t) => {
    sluice = await startSluice(t)
    const dashboard = startProcess(t, 'apps/dashboard/src/main.ts', { ...sluice.settings })
    await dashboard.line(({ msg }) => msg === 'dashboard.listening')
    const [worker] = sluice.workers
    assert(worker)
    processes = { api: sluice.api, worker, dashboard }
  })

  const sumOf = async (
    name: string,
    metric: `sluice_${string}`,
    labels: Record<string, string> = {},
  ) => readMetric(processes[name] ?? assert.fail(), metric, labels)

  test('pass promtool', needs('prometheus'), async () => {
    for (const [name, process] of Object.entries(processes))
      assert.equal(promtool(['check', 'metrics'], await metricsOf(process)), '', name)
  })

  test('requests are counted by route, method and status, and those of no route as such', async () => {
    const labels = { route: '/sources/{id}', method: 'GET', status: '404' }
    const headers = { 'x-api-key': sluice.key }
    for (const id of ['A'.repeat(24), 'B'.repeat(24)])
      await fetch(`${sluice.url}/sources/${id}`, { headers })
    assert.equal(await sumOf('api', 'sluice_requests_total', labels), 2)
    assert.equal(await sumOf('api', 'sluice_request_seconds_count', { route: labels.route }), 2)
    await fetch(`${sluice.url}/unknown`, { method: 'PATCH', headers })
    assert.equal(
      await sumOf('api', 'sluice_requests_total', {
        route: 'none',
        method: 'PATCH',
        status: '404',
      }),
      1,
    )
  })

  test('a stored thread is counted by its outcome, with its times in the queue, in the store and end to end', async () => {
    const { status } = await postThread(sluice, aThread())
    assert.equal(status, 200)
    // The caller may have its answer before the worker learns that Redis has the result.
    await until(
      'the thread is counted',
      async () => (await sumOf('worker', 'sluice_threads_stored_total')) > 0,
    )
    assert.equal(await sumOf('worker', 'sluice_threads_stored_total', { outcome: 'created' }), 1)
    for (const time of ['queue_', 'store_', ''])
      assert.equal(
        await sumOf('worker', `sluice_job_${time}seconds_count`, { lane: 'interactive' }),
        1,
        time,
      )
    assert.equal(await sumOf('worker', 'sluice_batch_threads_sum'), 1)
    const [queue, store, whole] = await Promise.all(
      ['queue_', 'store_', ''].map((time) => sumOf('worker', `sluice_job_${time}seconds_sum`)),
    )
    assert(
      queue && store && whole && Math.abs(whole - queue - store) < 0.001,
      `${queue} + ${store} = ${whole}`,
    )
  })

  test('the times of commands are those of Redis and MongoDB, scripts by their names', async () => {
    assert((await sumOf('api', 'sluice_redis_command_seconds_count', { command: 'enqueue' })) >= 1)
    assert(
      (await sumOf('worker', 'sluice_redis_command_seconds_count', { command: 'complete' })) >= 1,
    )
    assert(
      (await sumOf('worker', 'sluice_mongodb_command_seconds_count', { command: 'insert' })) >= 1,
    )
    assert((await sumOf('api', 'sluice_mongodb_command_seconds_count', { command: 'find' })) >= 1)
    assert.equal(await sumOf('worker', 'sluice_store_available'), 1)
    assert.equal(await sumOf('dashboard', 'sluice_build_info'), 1)
  })

  test('the API reports the state of the queue', async () => {
    assert.equal(await sumOf('api', 'sluice_jobs', { lane: 'interactive', state: 'waiting' }), 0)
    assert.equal(await sumOf('api', 'sluice_threads', { lane: 'bulk', state: 'failed' }), 0)
    assert.equal(
      await sumOf('api', 'sluice_oldest_job_seconds', { lane: 'bulk', state: 'active' }),
      0,
    )
    assert.equal(await sumOf('api', 'sluice_lane_paused', { lane: 'bulk' }), 0)
  })

  test(
    'each query of the Grafana dashboard finds data, and no alert fires',
    needs('prometheus'),
    async (t) => {
      const prometheus = await startPrometheus(t, Object.values(processes))
      const load = postSteadily(t, sluice, { callers: 2 })
      const { panels } = JSON.parse(await readDocumented('grafana.json'))
      const targets: { expr: string }[] = panels.flatMap(
        (panel: { targets?: [] }) => panel.targets ?? [],
      )
      assert(targets.length > 20)
      for (const { expr } of targets) {
        const query = expr.replaceAll('$__rate_interval', '10s')
        await until(query, async () =>
          (await prometheus.query(query)).some(({ value: [, value] }) => value !== 'NaN'),
        )
      }
      await load.stop()
      await until('no alert fires', async () => (await prometheus.firing()).length === 0)
    },
  )

  test('each process is seen by its heartbeats, which count what happened', async (t) => {
    const redis = connectRetrying(
      { redisUrl: sluice.settings.REDIS_URL ?? '', queue: '' },
      () => {},
    )
    t.onTestFinished(() => redis.disconnect())
    const keys = queueKeys(sluice.settings.QUEUE ?? '')
    const readOverview = createReadOverview(redis, keys)
    const kinds = await until('a heartbeat of each process', async () => {
      const { processes: seen } = await readOverview()
      return seen.length === 3 && seen.map(({ kind }) => kind)
    })
    assert.deepEqual(kinds, ['api', 'dashboard', 'worker'])
    const readHistory = createReadHistory(redis, keys)
    const stored = await until(
      'the heartbeats after a thread was stored',
      async () =>
        (await readHistory('1 h')).find(
          ({ point }) => point && point.accepted > 0 && point.stored.created > 0,
        )?.point,
    )
    const whole = stored?.totalTime?.interactive
    assert(
      stored?.queueTime && stored.storeTime && whole && whole.p99 < 30 && whole.p95 <= whole.p99,
    )
  })

  test('the API and `sluice status` show what the heartbeats tell, to an operator', async () => {
    const { key } = await createKey(sluice.db, { role: 'operator', name: 'on call' })
    await untilKeyIsKnown(sluice.url, key)
    const { status, text } = await createCaller({ url: sluice.url, key }).get('/admin/overview')
    assert.equal(status, 200, text)
    const { processes: seen, lastHour }: Status = JSON.parse(text)
    assert.deepEqual([seen.length, lastHour.stored.created > 0], [3, true])
    const deps = { folder: tmpdir(), env: { SLUICE_API_KEY: key } }
    const { stdout } = await runCommand(deps, 'status', ['--url', sluice.url])
    assert.match(stdout, /^All is well\.$/m)
    assert.match(stdout, /^No job is in the queue\.$/m)
    assert.match(stdout, /^worker +\S+:\d+ /m)
  })
})

test('each count of an API is the number of answers that its callers got', async (t) => {
  const { db, url } = await startSluice(t, { workers: 0, settings: { WAIT_SECONDS: '1' } })
  const limits = { quotesPerSecond: 1, burstQuotes: 100 }
  const { key } = await createKey(db, { tenant: 'acme', name: 'limited', limits })
  const { key: operatorKey } = await createKey(db, { role: 'operator', name: 'on call' })
  const importer = createCaller({ url, key })
  // A new count does not compile until it is caused and counted here.
  const expected: Record<CountsBy<'api'>, number> = {
    invalid: 4,
    forbidden: 3,
    accepted: 1,
    timedOut: 1,
    refused: 2,
  }
  const statuses: number[] = []
  for (let sent = 0; sent < 4; sent++) statuses.push((await importer.post({})).status)
  for (let sent = 0; sent < 3; sent++) statuses.push((await importer.get('/admin/jobs')).status)
  const large = aThread({ quotes: 1_000 })
  for (let sent = 0; sent < 3; sent++) statuses.push((await importer.post(large)).status)
  assert.deepEqual(statuses, [400, 400, 400, 400, 403, 403, 403, 504, 429, 429])
  const operator = createCaller({ url, key: operatorKey })
  const counted = await until('the last answers are counted', async () => {
    const { lastHour }: Status = JSON.parse((await operator.get('/admin/overview')).text)
    return lastHour.refused === expected.refused && lastHour
  })
  assert.deepEqual({ ...counted, ...expected }, counted)
})
