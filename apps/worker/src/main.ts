// Starts a worker process.
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import {
  checkOf,
  createLogger,
  noteCommands,
  openMetrics,
  openTracing,
  pingWhenAsked,
  readinessOf,
  runUntilStopped,
  settingsOrExit,
  startAdminServer,
  versionOfSluice,
} from '@sluice/ops'
import {
  asError,
  type Consumer,
  connectRetrying,
  createConsumer,
  type FetchedJob,
  observeCommands,
  pingRedis,
  queueKeys,
  startHeartbeats,
  watchLayout,
  watchRedis,
} from '@sluice/queue'
import { connectStore, createBatchStore, mongoCommands, PROBE_MS, probeStore } from '@sluice/store'
import { readWorker, workerMetrics } from './metrics.ts'
import { workerSettings } from './settings.ts'
import { createPutBack, isStoreAway } from './store-away.ts'
import { createIngest, createWork, describeFailure, describeJob, failedThreadsOf, requestsOf } from './worker.ts'

const settings = settingsOrExit(workerSettings)
const log = createLogger({ name: 'worker', level: settings.logLevel })

/** The time to settle the last batches when the process stops: half a second of the grace time is kept for that. */
const SETTLE_MS = 300

/** Jobs that a worker has for longer are shown in the overview, at most some of them. */
const SLOW_MS = 10_000
const SLOW_SHOWN = 10

/** Most characters of text in one batch: some 8 MB. */
const BATCH_CHARACTERS = 8_000_000

await runUntilStopped({
  graceSeconds: settings.shutdownGraceSeconds,
  log,
  async start({ release, stopping, stop }) {
    const opened = openMetrics('worker', workerMetrics)
    const { metrics } = opened
    release('tracing', await openTracing('worker', settings))
    const store = connectStore(settings.mongodbUrl)
    release('store', () => store.close())
    const redis = connectRetrying(settings.redisUrl, (err) => log.warn({ err: err.message }, 'redis.error'))
    release('redis', async () => redis.disconnect())
    observeCommands(redis, noteCommands(metrics.redisTime, metrics.redisErrors))
    const pings = { redis: pingWhenAsked(() => pingRedis(redis)), store: pingWhenAsked(store.ping) }
    // The admin server starts first, so that it answers while Redis is away.
    const listsSources = settings.listSources === 'on'
    const searchesQuotes = settings.searchQuotes === 'on'
    const onCommand = noteCommands(metrics.mongoTime, metrics.mongoErrors)
    const batchStore = createBatchStore(mongoCommands(store.db, { listsSources, searchesQuotes, onCommand }))
    const probeCommands = mongoCommands(store.db, { limitMs: PROBE_MS, onCommand })
    const probe = (bytes: number) => probeStore(probeCommands, bytes)
    const ingest = createIngest({
      storeBatch: batchStore.store,
      bounds: { documents: settings.batchDocuments, characters: BATCH_CHARACTERS },
      probeStore: probe,
      metrics,
    })
    const putBackAny = createPutBack(probe, metrics, log)
    opened.sample([metrics.storeAvailable], async () => {
      const { ok } = await pings.store()
      metrics.storeAvailable.set(Number(ok && putBackAny.awayMs() === undefined))
    })
    const admin = await startAdminServer({
      port: settings.adminPort,
      host: settings.adminHost,
      metrics: opened,
      findFault: ingest.findStuck,
      async readiness() {
        const [ofRedis, mongodb] = await Promise.all([pings.redis(), pings.store()])
        return readinessOf({
          process: checkOf(!stopping.aborted, 'stopping'),
          redis: redis.status === 'ready' ? ofRedis : checkOf(false, 'not connected'),
          mongodb,
        })
      },
    })
    release('admin server', admin.close)
    const keys = queueKeys(settings.queue)
    await watchRedis(redis, {
      onFault: settings.redisChecks,
      minMemory: settings.minRedisMemory,
      warn: (fault) => log.warn({ fault }, 'redis.unfit'),
    })
    await watchLayout(redis, keys.base, ({ message }) => stop(message))

    release('batch store', async () => {
      // Nothing is lost if this fails or exceeds its time: the tokens of the last batches become stale, and other
      // processes sum their sources.
      const settling = batchStore.settle().catch((err) => log.warn({ err }, 'batches.not_settled'))
      await Promise.race([settling, delay(SETTLE_MS, undefined, { ref: false })])
    })
    const putBack = (job: FetchedJob, reason: string) =>
      putBackAny.putBack(consumer, requestsOf(job), reason, describeJob(job))
    const consumer: Consumer = createConsumer({
      ...settings,
      // As in the log's `hostname` and `pid`.
      name: `${hostname()}:${process.pid}`,
      keys,
      redis,
      concurrency: { interactive: settings.concurrency, bulk: settings.bulkConcurrency },
      resultBounds: {
        retainedMs: settings.retainedResultSeconds * 1000,
        transientMs: settings.waitSeconds * 2000,
        bytes: settings.resultBytes,
        recentBytes: settings.recentBytes,
      },
      ready: ingest.ready,
      work: createWork({ ingest, putBack, metrics, log }),
      async beforeFinalFailure(job) {
        const requests = requestsOf(job)
        try {
          await batchStore.recountRequests(requests)
          return undefined
        } catch (error) {
          if (!(await isStoreAway(error, probe, requests))) throw error
          return putBack(job, asError(error).message)
        }
      },
      onStored(receipts) {
        for (const { source } of receipts) metrics.stored.inc({ outcome: source.outcome })
      },
      onFailed(job, failure, final) {
        metrics.failed.inc({ final: String(final) })
        if (final) metrics.threadsFailed.inc(failedThreadsOf(job, failure))
        const page =
          final && settings.dashboardUrl ? { page: `${settings.dashboardUrl.replace(/\/$/, '')}/jobs/${job.id}` } : {}
        const fields = { ...describeJob(job), ...describeFailure(job, failure), ...page }
        log[final ? 'error' : 'warn'](fields, final ? 'job.failed' : 'job.try_failed')
      },
      onEvicted: (jobId) => log.warn({ jobId }, 'job.evicted'),
      onError: (err) => log.error({ err }, 'queue.failed'),
    })
    const about = { kind: 'worker', version: versionOfSluice() } as const
    const heartbeats = startHeartbeats(redis, keys, about, () =>
      readWorker(metrics, {
        storeAwayMs: putBackAny.awayMs(),
        slowJobs: consumer.lockedFor(SLOW_MS).slice(0, SLOW_SHOWN),
      }),
    )
    release('heartbeats', heartbeats)
    release('consumer', () => consumer.close((settings.shutdownGraceSeconds - 0.5) * 1000))

    log.info({ adminPort: admin.port }, 'worker.listening')
  },
})
