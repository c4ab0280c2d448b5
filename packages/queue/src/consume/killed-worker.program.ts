// A consumer whose only job fails for good, and which kills its own process before one of the commands that follow.
// Arguments: queue, URL of Redis, the number of commands that it lives for after BullMQ kept the job as failed.

import { queueKeys } from '../bullmq-layout/queue-keys.ts'
import { consume } from '../queue.test-support.ts'
import { connectRetrying } from '../redis/redis-connections.ts'
import { PartlyStoredError } from './fail-job.ts'

const [queue = '', url = '', commands = ''] = process.argv.slice(2)
const redis = connectRetrying(url, () => {})
let left = Number.POSITIVE_INFINITY
const send = redis.sendCommand.bind(redis)
redis.sendCommand = (...args) => {
  if (left-- === 0) process.kill(process.pid, 'SIGKILL')
  return send(...args)
}

consume(queueKeys(queue), redis, {
  work: ({ data }) =>
    Promise.reject(
      new PartlyStoredError(
        'the last try fails',
        data.threads.map(() => null),
      ),
    ),
  onFailed() {
    left = Number(commands)
  },
})
