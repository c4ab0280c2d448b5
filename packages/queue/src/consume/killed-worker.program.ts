// A consumer whose only job fails for good with its first thread stored, and which kills its own process before the next
// command. Arguments: queue, URL of Redis.

import { connectRetrying } from '@sluice/process/redis'
import { queueKeys } from '../job/lanes.ts'
import { consume } from '../queue.test-support.ts'
import { PartlyStoredError } from './fail-job.ts'

const STORED = {
  source: { outcome: 'created', wordCount: 1, createdAt: '2024-05-01T00:00:00.000Z' },
  outcomes: '=',
} as const

const [queue = '', url = ''] = process.argv.slice(2)
const redis = connectRetrying({ redisUrl: url, queue: '' }, () => {})
let hasFailed = false
const send = redis.sendCommand.bind(redis)
redis.sendCommand = (...args) => {
  if (hasFailed) process.kill(process.pid, 'SIGKILL')
  return send(...args)
}

consume(queueKeys(queue), redis, {
  work: ({ data }) =>
    Promise.reject(
      new PartlyStoredError(
        'the last try fails',
        [],
        data.threads.map((_, place) => (place === 0 ? STORED : null)),
        undefined,
      ),
    ),
  onFailed() {
    hasFailed = true
  },
})
