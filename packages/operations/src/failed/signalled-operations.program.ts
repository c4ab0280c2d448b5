// A program for tests: carries out operations at a low rate, and sends itself a signal during a
// step, when the jobs are moved but the step is not recorded. Arguments: queue, URL of Redis, jobs
// per second, number of the step, signal.
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '@sluice/queue'
import { createOperations, runOperations } from './operations.ts'

const [queue = '', redisUrl = '', jobsPerSecond, last, signal] = process.argv.slice(2)
const redis = connectRetrying({ redisUrl, queue: '' }, () => {})
let steps = 0
const stop = runOperations({
  operations: createOperations(redis, queueKeys(queue)),
  failedJobs: {
    scan: () => assert.fail(),
    count: () => assert.fail(),
    async move(_, ids) {
      steps += 1
      if (steps === Number(last)) {
        process.kill(process.pid, signal)
        // The signal may arrive a moment later.
        await delay(100)
      }
      return ids.length
    },
  },
  jobsPerSecond: Number(jobsPerSecond),
  onStep: () =>
    assert.ok(steps < Number(last), 'a step counts that the process took without the lease'),
  onError: assert.fail,
  takeThreadStep: () => assert.fail(),
  openDue: async () => {},
})
process.on('SIGTERM', async () => {
  await stop()
  redis.disconnect()
})
