// For tests of the queue: adds jobs, and loads the BullMQ that our scripts are compared with.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { asList } from '@sluice/process/redis'
import { UNBOUNDED } from '@sluice/test-support'
import type { Redis } from 'ioredis'
import { afterAll } from 'vitest'
import { type ConsumerOptions, createConsumer } from './consume/consume.ts'
import { createComplete } from './consume/end-jobs.ts'
import { createEnqueuer, type JobInput } from './enqueue/enqueue.ts'
import { createRecordAttempt } from './failed/failed-set.ts'
import { type CompletedJob, type IngestJob, type Lane, nameJob } from './job/job.ts'
import type { QueueKeys } from './job/lanes.ts'
import type { ResultBounds } from './replies/results.ts'

/** Makes a function that adds a job and returns its first stamp. */
export function createJobAdder(redis: Redis, keys: QueueKeys) {
  const { enqueue } = createEnqueuer(keys, redis, UNBOUNDED)
  return async ({ id, lane, job }: { id: string; lane: Lane; job: JobInput }): Promise<number> => {
    if (redis.status !== 'ready') await once(redis, 'ready')
    await enqueue(id, lane, job)
    const data = await redis.hget(keys.jobs[lane] + id, 'data')
    return JSON.parse(data ?? '{}').stamp
  }
}

/** The threads of a tenant that count as load. */
export async function tenantThreads(
  redis: Redis,
  { base }: QueueKeys,
  tenant: string,
): Promise<number> {
  const first = "return (cmsgpack.unpack(redis.call('HGET', KEYS[1], ARGV[1])))"
  return Number(await redis.eval(first, 1, `${base}load`, `of:${tenant}`))
}

/** A job of the interactive lane that succeeded, with some of its fields. */
export function completed(
  id: string,
  { data, ...more }: Partial<Omit<CompletedJob, 'data'>> & { data?: Partial<IngestJob> } = {},
): CompletedJob {
  const own: IngestJob = {
    tenant: 't',
    stamp: 0,
    requestId: 'r',
    retained: false,
    threads: [],
    ...data,
  }
  return {
    id,
    name: nameJob(own.threads),
    lane: 'interactive',
    attempt: 1,
    token: '',
    progress: {},
    enqueuedAt: 0,
    result: { receipts: [null] },
    ...more,
    data: own,
  }
}

/** Makes a function that fails a job for good, of which this process has the lock `token`. */
export function createFail(
  redis: Redis,
  keys: QueueKeys,
  failedBytes = 1_000_000_000,
  onEvicted = (_: string) => {},
) {
  const record = createRecordAttempt(redis, keys, {
    name: 'here:1',
    failedBytes,
    onEvicted,
    onError: assert.fail,
  })
  return async (
    id: string,
    more?: Parameters<typeof completed>[1],
    reason = 'no',
  ): Promise<void> => {
    const job = completed(id, { token: 'token', ...more })
    const { threads = [null] } = JSON.parse(
      (await redis.hget(keys.jobs[job.lane] + id, 'data')) ?? '{}',
    )
    const result = { receipts: Array.from(threads, () => null), failure: reason }
    const error = new Error(reason)
    await record(job, error, [], { result, progress: job.progress, stacks: [String(error.stack)] })
  }
}

/** Bounds of results that no test reaches by chance. */
export const BOUNDS: ResultBounds = {
  retainedMs: 3_600_000,
  transientMs: 60_000,
  resultBytes: 1_000_000,
  recentBytes: 1_000_000,
  claimBytes: 1_000_000,
}

/** Makes a function that completes these jobs in one step. */
export function createCompleteJobs(redis: Redis, keys: QueueKeys, bounds = BOUNDS, worker = 'w') {
  const complete = createComplete(redis, keys, bounds, worker)
  return (jobs: readonly CompletedJob[]) => Promise.all(jobs.map(complete))
}

/** Consumes a queue with wide bounds. Without handlers, nothing is noted. */
export function consume(
  keys: QueueKeys,
  redis: Redis,
  handlers: Pick<ConsumerOptions, 'work'> & Partial<ConsumerOptions>,
): ReturnType<typeof createConsumer> {
  return createConsumer({
    keys,
    redis,
    ...BOUNDS,
    transientMs: 3_600_000,
    failedBytes: 1_000_000,
    concurrency: { interactive: 10, bulk: 10 },
    bytesInHand: 64 * 1024 * 1024,
    ready: async () => {},
    beforeFinalFailure: async () => undefined,
    name: 'here:1',
    onFailed: () => {},
    stored: { inc: () => {} },
    onEvicted: () => {},
    onError: (error) => console.error(error),
    onRedisError: handlers.onError ?? ((error) => console.error(error)),
    onConnected: () => {},
    ...handlers,
  })
}

/** Returns each key of a queue that has one of these words in any field or element. */
export async function keysWith(
  redis: Redis,
  { prefix }: Pick<QueueKeys, 'prefix'>,
  words: readonly string[],
): Promise<string[]> {
  const read: Record<string, (key: string) => Promise<unknown>> = {
    string: (key) => redis.get(key),
    list: (key) => redis.lrange(key, 0, -1),
    set: (key) => redis.smembers(key),
    zset: (key) => redis.zrange(key, '0', '-1'),
    stream: (key) => redis.xrange(key, '-', '+'),
    hash: (key) => redis.hgetall(key),
  }
  const found = new Set<string>()
  let cursor: string | undefined
  while (cursor !== '0') {
    const [next, keys] = await redis.scan(cursor ?? '0', 'MATCH', `${prefix}:*`, 'COUNT', 1_000)
    cursor = next
    for (const key of keys) {
      const content = JSON.stringify(await read[await redis.type(key)]?.(key)) ?? ''
      if (words.some((word) => content.includes(word))) found.add(key)
    }
  }
  return [...found].sort()
}

/**
 * Loads the installed BullMQ, or the version that the environment names (`BULLMQ=latest`), which
 * npm installs into a temporary folder.
 */
export async function loadBullMQ(): Promise<typeof import('bullmq')> {
  const version = process.env.BULLMQ
  if (version === undefined) return import('bullmq')
  const folder = await mkdtemp(join(tmpdir(), 'bullmq-'))
  afterAll(() => rm(folder, { recursive: true, force: true }))
  await promisify(execFile)('npm', [
    'install',
    '--prefix',
    folder,
    '--no-audit',
    '--no-fund',
    `bullmq@${version}`,
  ])
  const manifest = JSON.parse(
    await readFile(join(folder, 'node_modules/bullmq/package.json'), 'utf8'),
  )
  console.log(`Compared with BullMQ ${manifest.version}`)
  return createRequire(join(folder, 'main.js'))('bullmq')
}

/** Makes a function that returns the load of the whole queue. */
export function createReadLoad(redis: Redis, { base }: QueueKeys) {
  const totals =
    "local all = redis.call('HGET', KEYS[1], 'all') return all and {cmsgpack.unpack(all)} or {}"
  return async () => {
    const [threads = 0, bytes = 0, interactive = 0, , drained = 0] = asList(
      await redis.eval(totals, 1, `${base}load`),
    )
    return {
      threads: Number(threads),
      bytes: Number(bytes),
      interactive: Number(interactive),
      drained: Number(drained),
    }
  }
}

export { returnJob } from './consume/end-jobs.ts'
export { createRecordAttempt } from './failed/failed-set.ts'
export { MAX_ATTEMPTS } from './job/job.ts'
export { openWorker } from './job/lanes.ts'
export type { JobInput }
