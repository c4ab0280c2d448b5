import assert from 'node:assert/strict'
import { StoreAwayError } from '@sluice/store'
import { test } from 'vitest'
import { createBeforeFinalFailure } from './final-failure.ts'

const thread = { source: { service: 'slack' as const, externalId: 'a', title: 'a' }, quotes: [{ text: 'five!' }] }
const data = { tenant: 'acme', stamp: 1, requestId: 'r', retained: false, threads: [thread] }
const state = { digests: [], attempt: 5, suspect: false, enqueuedAt: 0, redelivered: true }
const job = { id: 'j', name: 'slack/a', lane: 'bulk' as const, data, ...state }

/** Handles a job whose recounts fail by these errors, then succeed. Returns the result, and what was done. */
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
      if (!isBack) throw new Error('away')
    },
    putBack(_job, { reason }) {
      done.push(reason)
      return { away: true }
    },
  })
  const result = await beforeFinalFailure(job).catch((error: Error) => error)
  return { result, done }
}

const unknown = () => new StoreAwayError(new Error('InternalError'), false)

test('a job whose sources cannot be recounted is put back if the store is away, whatever the error is', async () => {
  const reason = 'MongoDB is away: InternalError'
  assert.deepEqual(await fail([unknown()], false), { result: { away: true }, done: ['recount', 'probe', reason] })
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
