import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { beforeSuite, type StartedProcess, startProcess } from '@sluice/test-support'
import { describe, test } from 'vitest'
import { aThread, postThread } from '../support/post-thread.ts'
import { startSluice, type TestSluice } from '../support/start-sluice.ts'
import { metricsOf, readMetric } from './support/until-metric.ts'

/** Debian's package `prometheus` has it. */
const hasPromtool = spawnSync('promtool', ['--version']).error === undefined

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

  const sumOf = async (name: string, metric: `sluice_${string}`, labels: Record<string, string> = {}) =>
    readMetric(processes[name] ?? assert.fail(), metric, labels)

  test.skipIf(!hasPromtool)('promtool finds no fault in them (Debian: apt-get install prometheus)', async () => {
    for (const [name, process] of Object.entries(processes)) {
      const input = await metricsOf(process)
      const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' })
      assert.deepEqual([status, stdout, stderr], [0, '', ''], name)
    }
  })

  test('requests are counted by route, method and status, and those of no route as such', async () => {
    const labels = { route: '/sources/{id}', method: 'GET', status: '404' }
    const headers = { 'x-api-key': sluice.key }
    for (const id of ['A'.repeat(24), 'B'.repeat(24)]) await fetch(`${sluice.url}/sources/${id}`, { headers })
    assert.equal(await sumOf('api', 'sluice_requests_total', labels), 2)
    assert.equal(await sumOf('api', 'sluice_request_seconds_count', { route: labels.route }), 2)
    await fetch(`${sluice.url}/unknown`, { method: 'PATCH', headers })
    assert.equal(await sumOf('api', 'sluice_requests_total', { route: 'none', method: 'PATCH', status: '404' }), 1)
  })

  test('a stored thread is counted by its outcome, with its times in the queue, in the store and end to end', async () => {
    const { status } = await postThread(sluice, aThread())
    assert.equal(status, 200)
    assert.equal(await sumOf('worker', 'sluice_threads_stored_total', { outcome: 'created' }), 1)
    for (const time of ['queue_', 'store_', ''])
      assert.equal(await sumOf('worker', `sluice_job_${time}seconds_count`, { lane: 'interactive' }), 1, time)
    assert.equal(await sumOf('worker', 'sluice_batch_threads_sum'), 1)
    const [queue, store, whole] = await Promise.all(
      ['queue_', 'store_', ''].map((time) => sumOf('worker', `sluice_job_${time}seconds_sum`)),
    )
    assert(queue && store && whole && Math.abs(whole - queue - store) < 0.001, `${queue} + ${store} = ${whole}`)
  })

  test('the times of commands are those of Redis and MongoDB, scripts by their names', async () => {
    assert((await sumOf('api', 'sluice_redis_command_seconds_count', { command: 'enqueue' })) >= 1)
    assert((await sumOf('worker', 'sluice_redis_command_seconds_count', { command: 'complete' })) >= 1)
    assert((await sumOf('worker', 'sluice_mongodb_command_seconds_count', { command: 'insert' })) >= 1)
    assert((await sumOf('api', 'sluice_mongodb_command_seconds_count', { command: 'find' })) >= 1)
    assert.equal(await sumOf('worker', 'sluice_store_available'), 1)
    assert.equal(await sumOf('dashboard', 'sluice_build_info'), 1)
  })

  test('the API reports the state of the queue', async () => {
    assert.equal(await sumOf('api', 'sluice_jobs', { lane: 'interactive', state: 'waiting' }), 0)
    assert.equal(await sumOf('api', 'sluice_threads', { lane: 'bulk', state: 'failed' }), 0)
    assert.equal(await sumOf('api', 'sluice_oldest_job_seconds', { lane: 'bulk', state: 'active' }), 0)
    assert.equal(await sumOf('api', 'sluice_lane_paused', { lane: 'bulk' }), 0)
  })
})
