import assert from 'node:assert/strict'
import { openMetrics } from '@sluice/process'
import { type JobResult, QueueFullError } from '@sluice/queue'
import { test, vi } from 'vitest'
import { apiMetrics } from '../metrics.ts'
import type { ImportGroup } from './group-items.ts'
import { newRun, storeGroups } from './store-groups.ts'

const MIB = 1024 * 1024

const thread = {
  source: { title: 'a', externalId: 'a', service: 'slack' as const },
  quotes: [],
}
const refused = (bytes: number): ImportGroup => ({
  items: [
    {
      result: JSON.stringify({
        index: 0,
        problem: { code: 'request_invalid', detail: 'x'.repeat(bytes) },
      }),
      mayComeAgain: false,
    },
  ],
  threads: [],
  bytes: 0,
  resultBytes: bytes,
})

const stored: ImportGroup = {
  items: [{ index: 0, thread }],
  threads: [thread],
  bytes: 0,
  resultBytes: 256,
}

/** Stores groups whose one job is completed by `completeJob`. */
function open(
  groups: ImportGroup[],
  signal = new AbortController().signal,
  { waitSeconds = 0, enqueue = async (id: string) => id } = {},
) {
  const job = Promise.withResolvers<JobResult | undefined>()
  const deps = {
    enqueuer: {
      enqueue,
      admit() {},
      admitRead() {},
      charge() {},
      quotaLeft: () => undefined,
      drained: () => undefined,
    },
    replyListener: {
      replica: 'r',
      wait: () => ({ result: job.promise, cancel() {}, accepted() {} }),
    },
    confirmReplicated: async () => {},
    metrics: openMetrics('test', apiMetrics).metrics,
    settings: { waitSeconds },
  }
  const read: ImportGroup[] = []
  async function* source() {
    for (const group of groups) {
      read.push(group)
      yield group
    }
  }
  const results = storeGroups(source(), {
    ...newRun(),
    deps,
    context: { tenant: 't', requestId: 'r', signal, startedAt: performance.now() },
  })
  return { results, completeJob: (result?: JobResult) => job.resolve(result), read }
}

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const value of values) all.push(value)
  return all
}

const loopIteration = () => new Promise((resolve) => setImmediate(resolve))

test('refused items wait for earlier results only while their bytes are few', async () => {
  const groups = [stored, refused(MIB), refused(MIB), refused(2 * MIB), refused(1)]
  const { results, completeJob, read } = open(groups)
  const first = results.next()
  await loopIteration()
  assert.equal(read.length, 4)
  completeJob()
  const all = [(await first).value, ...(await collect(results))]
  assert.deepEqual(
    all.map((items) => items?.length),
    [1, 1, 1, 1, 1],
  )
  assert.equal(read.length, 5)
})

test('a group is not read before a job of the eight in progress is done', async () => {
  const { results, completeJob, read } = open(Array(12).fill(stored))
  const first = results.next()
  await loopIteration()
  assert.equal(read.length, 8)
  completeJob()
  await first
  assert.equal((await collect(results)).length, 11)
})

test('the end of the request ends the wait for room', async () => {
  const request = new AbortController()
  const { results, completeJob, read } = open(Array(12).fill(stored), request.signal)
  const first = results.next()
  await loopIteration()
  request.abort()
  await loopIteration()
  assert.equal(read.length, 12)
  completeJob()
  await first
})

test('an import waits for room although the clock of its machine is moved', async (t) => {
  let attempts = 0
  const now = Date.now
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + attempts * 3_600_000)
  t.onTestFinished(() => clock.mockRestore())
  async function enqueue(id: string): Promise<string> {
    attempts += 1
    if (attempts === 1) throw new QueueFullError('full', 1)
    completeJob({ receipts: [null] })
    return id
  }
  const signal = new AbortController().signal
  const { results, completeJob } = open([stored], signal, { waitSeconds: 30, enqueue })
  await results.next()
  assert.equal(attempts, 2)
})
