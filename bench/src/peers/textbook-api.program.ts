import { Queue, QueueEvents } from 'bullmq'
import { peerEnv } from './peer-env.ts'
import { servePeer } from './serve-peer.ts'

// Request and reply as in BullMQ's documentation: add a job, wait until it is finished.
const { redisUrl, queue: name, key, port } = peerEnv()
const connection = { url: redisUrl }
const queue = new Queue(name, { connection })
const events = new QueueEvents(name, { connection })
await Promise.all([queue.waitUntilReady(), events.waitUntilReady()])

const WAIT_MS = 30_000
/**
 * Some finished jobs are kept, because waiting for a job that is removed at once fails now and
 * then.
 */
const removeOnComplete = { count: 1_000 }

servePeer({
  port,
  key,
  async store(thread) {
    const job = await queue.add('ingest', thread, { removeOnComplete })
    return job.waitUntilFinished(events, WAIT_MS)
  },
})
