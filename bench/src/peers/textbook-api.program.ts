import { Queue, QueueEvents } from 'bullmq'
import { peerEnv } from './peer-env.ts'
import { servePeer } from './serve-peer.ts'

// As BullMQ's documentation shows request and reply: add a job, wait until it is finished.
const { redisUrl, queue: name, key, port } = peerEnv()
const connection = { url: redisUrl }
const queue = new Queue(name, { connection })
const events = new QueueEvents(name, { connection })
await Promise.all([queue.waitUntilReady(), events.waitUntilReady()])

const WAIT_MS = 30_000
/** Waiting for a job that is removed at once would fail now and then, so some are kept. */
const removeOnComplete = { count: 1_000 }

servePeer({
  port,
  key,
  async store(thread) {
    const job = await queue.add('ingest', thread, { removeOnComplete })
    return job.waitUntilFinished(events, WAIT_MS)
  },
})
