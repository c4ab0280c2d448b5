import { setTimeout as delay } from 'node:timers/promises'
import { createLogger, createMetrics, runUntilStopped, settingsOrExit, startAdminServer } from '@sluice/ops'
import {
  connectPatient,
  createBatches,
  createForgetJob,
  createResults,
  queueKeys,
  watchEvictionPolicy,
} from '@sluice/queue'
import { connectStore, createBatchStore, mongoCommands } from '@sluice/store'
import { createIngest } from './ingest.ts'
import { buildWorker } from './worker.ts'
import { createWorkerMetrics } from './worker-metrics.ts'
import { workerSettings } from './worker-settings.ts'

const settings = settingsOrExit(workerSettings)
const log = createLogger({ name: 'worker', level: settings.logLevel })

/** How long the store may take to raise its watermark when the process stops, in ms, of the half second that is kept for it. */
const CLOSE_MS = 300

/** What a batch holds at most besides its documents: some 8 MB of text. */
const BATCH_CHARACTERS = 8_000_000

await runUntilStopped({
  graceSeconds: settings.shutdownGraceSeconds,
  log,
  async start({ release }) {
    const store = connectStore(settings.mongodbUrl)
    release('store', () => store.close())
    const redis = connectPatient(settings.redisUrl, (err) => log.warn({ err: err.message }, 'redis.error'))
    release('redis', async () => redis.disconnect())
    // First, so that the process can be looked at while Redis is away.
    const metrics = createMetrics({ prefix: 'sluice_', process: 'worker' })
    const admin = await startAdminServer({
      port: settings.adminPort,
      host: settings.adminHost,
      metrics,
      async isReady() {
        const checks = {
          redis: redis.status === 'ready',
          mongodb: await store.ping().then(
            () => true,
            () => false,
          ),
        }
        return { ready: checks.redis && checks.mongodb, checks }
      },
    })
    release('admin server', admin.close)
    await watchEvictionPolicy(redis)

    const counters = createWorkerMetrics(metrics)
    const batchStore = createBatchStore(mongoCommands(store.db))
    release('batch store', async () => {
      // Where this fails or takes too long, other processes sum the last threads once more.
      const closing = batchStore.close().catch((err) => log.warn({ err }, 'batches.not_closed'))
      await Promise.race([closing, delay(CLOSE_MS, undefined, { ref: false })])
    })
    const keys = queueKeys(settings.queue)
    const consumer = buildWorker({
      ...settings,
      keys,
      redis,
      inHand: { waiting: settings.concurrency, bulk: settings.bulkConcurrency },
      results: createResults(redis, keys),
      resultBounds: {
        toldMs: settings.toldResultSeconds * 1000,
        untoldMs: settings.waitSeconds * 2000,
        bytes: settings.resultBytes,
        failedBytes: settings.failedBytes,
      },
      ingest: createIngest(
        batchStore.store,
        { documents: settings.batchDocuments, characters: BATCH_CHARACTERS },
        store.ping,
        (size, seconds) => {
          counters.batchSize.observe(size)
          counters.batchTime.observe(seconds)
        },
      ),
      batches: createBatches(redis, keys),
      forgetJob: createForgetJob(keys, redis),
      pingStore: store.ping,
      metrics: counters,
      log,
    })
    release('consumer', () => consumer.close((settings.shutdownGraceSeconds - 0.5) * 1000))

    log.info({ adminPort: admin.port }, 'worker.listening')
  },
})
