import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { createLogger, openMetrics } from '@sluice/process'
import { type FetchedJob, PartlyStoredError, UncompletedError } from '@sluice/queue'
import { CommandFailedError } from '@sluice/store'
import { test } from 'vitest'
import { createBeforeFinalFailure, createNoteFailure } from './job.ts'
import { workerMetrics } from './metrics.ts'

const thread = {
  source: { service: 'slack' as const, externalId: 'a', title: 'a' },
  quotes: [{ text: 'five!' }],
}
const data = { tenant: 'acme', stamp: 1, requestId: 'r', retained: false, threads: [thread] }
const state = {
  digests: [],
  attempt: 5,
  quarantined: false,
  waitsSince: 0,
  suppressions: '',
  redelivered: true,
}
const job = { id: 'j', name: 'slack/a', lane: 'bulk' as const, data, ...state }

/**
 * Handles a job whose recounts fail by these errors, then succeed. Returns the result, and what was
 * done.
 */
async function fail(errors: Error[], isBack: boolean) {
  const done: string[] = []
  const beforeFinalFailure = createBeforeFinalFailure({
    async recountRequests() {
      done.push('recount')
      const error = errors.shift()
      if (error !== undefined) throw error
    },
    async probeStore() {
      done.push('probe')
      if (!isBack) throw new Error('unavailable')
    },
    noteLost(_job, { reason }) {
      done.push(reason)
      return { unavailable: true }
    },
  })
  const result = await beforeFinalFailure(job).catch((error: Error) => error)
  return { result, done }
}

const unknown = () => new CommandFailedError(new Error('InternalError'), false)

test('a job whose sources cannot be recounted is returned if the store is unavailable, whatever the error is', async () => {
  const reason = 'MongoDB is unavailable: InternalError'
  assert.deepEqual(await fail([unknown()], false), {
    result: { unavailable: true },
    done: ['recount', 'probe', reason],
  })
})

test('a recount that fails while the store commits writes is tried again before the job fails for good', async () => {
  const done = ['recount', 'probe', 'recount']
  assert.deepEqual(await fail([unknown()], true), { result: undefined, done })
})

test('a recount that the store refuses again and again is reported', async () => {
  const refused = () => new Error('refused')
  const { result, done } = await fail([refused(), refused(), refused()], true)
  assert.deepEqual([result, done], [refused(), ['recount', 'recount', 'recount']])
})

const THREADS = 25
const places = Array.from({ length: THREADS }, (_, place) => place)

test('the log line of a failed import names its import and twenty failed threads, and counts the others', async () => {
  const written = new PassThrough()
  const { metrics } = openMetrics('test', workerMetrics)
  const note = createNoteFailure({
    metrics,
    onUncompleted: assert.fail,
    dashboardUrl: 'https://board.example/',
    log: createLogger('test', 'warn', written),
  })
  const reason = 'Document failed validation'
  const failed = places.map((place) => ({
    place,
    service: 'slack',
    externalId: `C${place}`,
    reason,
  }))
  note(aJob(), new PartlyStoredError(reason, failed, [], undefined), true)

  const line = JSON.parse(String(written.read()))
  assert.deepEqual(
    { ...line, time: 0, pid: 0, hostname: '', name: '' },
    {
      level: 'error',
      time: 0,
      pid: 0,
      hostname: '',
      name: '',
      jobId: 'j',
      requestId: 'r',
      importId: 'i',
      tenant: 'acme',
      threads: THREADS,
      attempt: 5,
      reason,
      failedThreads: places.slice(0, 20).map((place) => `slack/C${place}`),
      more: 5,
      page: 'https://board.example/jobs/j',
      msg: 'job.failed',
    },
  )
  const { values } = await metrics.threadsFailed.get()
  assert.equal(values[0]?.value, THREADS)
})

function aJob(): FetchedJob {
  const threads = places.map((place) => {
    return {
      source: { service: 'slack' as const, externalId: `C${place}`, title: 'a title' },
      quotes: [],
    }
  })
  const data = {
    tenant: 'acme',
    stamp: 1,
    requestId: 'r',
    retained: false,
    import: { id: 'i', places },
    threads,
  }
  const delivery = {
    attempt: 5,
    redelivered: true,
    quarantined: false,
    waitsSince: 0,
    suppressions: '',
  }
  return { id: 'j', name: 'slack/C0', lane: 'bulk', digests: [], data, ...delivery }
}

test('a completion that Redis refused is counted, and logged as an error also if more attempts follow', async () => {
  const written = new PassThrough()
  const { metrics } = openMetrics('test', workerMetrics)
  const reasons: string[] = []
  const onUncompleted = (reason: string) => void reasons.push(reason)
  const note = createNoteFailure({
    metrics,
    onUncompleted,
    dashboardUrl: null,
    log: createLogger('test', 'error', written),
  })
  note(aJob(), new UncompletedError([], new Error('WRONGTYPE')), false)
  assert.match(String(written.read()), /"job.try_failed"/)
  assert.deepEqual(reasons, [
    'the threads are stored, but Redis refuses to complete the job: WRONGTYPE',
  ])
  assert.equal((await metrics.uncompleted.get()).values[0]?.value, 1)
})
