import type { ThreadRequest } from '@sluice/contract'
import { Worker } from 'bullmq'
import { connectPeer } from './connect-peer.ts'
import { documentsOf } from './documents.ts'
import { peerEnv } from './peer-env.ts'
import { tellReady } from './serve-peer.ts'
import { storeByUpserts } from './store-thread.ts'

const { redisUrl, mongodbUrl, queue } = peerEnv()
const storeThread = storeByUpserts(connectPeer(mongodbUrl, 20))
/**
 * From 32 to 64 the rate is the same within noise, with 64 callers and with 256; at 100 it falls.
 */
const concurrency = 50

const worker = new Worker<ThreadRequest>(
  queue,
  async ({ data }) => {
    const documents = documentsOf(data)
    await storeThread(documents)
    return { wordCount: documents.wordCount }
  },
  { connection: { url: redisUrl }, concurrency },
)
await worker.waitUntilReady()
tellReady()
