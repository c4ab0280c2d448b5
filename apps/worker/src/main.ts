// The worker process: stores the threads of jobs, and consumes the queue.
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { runProcess } from '@sluice/boot'
import { createDeletionRecords } from '@sluice/boot/deletion-records'
import { createDurations } from '@sluice/boot/durations'
import { checkOf, openMetrics, reasonWithCode, settingsOrExit } from '@sluice/process'
import * as queue from '@sluice/queue'
import { commitProbe, createBatchStore, mongoCommands, PROBE_MS } from '@sluice/store'
import { quoteIdsOf, sourceIdOf } from '@sluice/store/ids'
import { createSourceReads } from '@sluice/store/read'
import { readSuppressions } from '@sluice/store/suppressions'
import { createDeletions, createSuppressionCopy } from './deletions.ts'
import { createIngest } from './ingest.ts'
import {
  createBeforeFinalFailure,
  createNoteFailure,
  createNoteTimes,
  createWork,
  describeJob,
  requestsOf,
} from './job.ts'
import { readWorker, workerMetrics } from './metrics.ts'
import { workerSettings } from './settings.ts'
import { createStoreLoss, createWatchStore, type LostStore } from './store-loss.ts'

const settings = settingsOrExit(workerSettings)
const opened = openMetrics('worker', workerMetrics)
const { metrics } = opened
const durations = createDurations()

/**
 * When the process stops, settling the last batches may take this long. At least KEPT_MS of the
 * grace time is left for it, and ends REST_MS before the grace time does.
 */
const SETTLE_MS = 5_000
const KEPT_MS = 500
const REST_MS = 200

/**
 * A readiness check waits at most this long for a probe of MongoDB, then uses the result of the
 * previous probe.
 */
const READY_MS = 1_500

/**
 * The overview shows jobs that a worker has had locked for longer than this, at most SLOW_SHOWN of
 * each worker.
 */
const SLOW_MS = 10_000
const SLOW_SHOWN = 10

/** The overview shows for this time why Redis refused to complete a job. */
const UNCOMPLETED_MS = 10_000

/**
 * Bounds one batch: its sources and quotes, and its characters of text (about 8 MB). A larger
 * request is written alone.
 */
const BATCH = { documents: 4_000, characters: 8_000_000 }

await runProcess({
  kind: 'worker',
  settings,
  opened,
  async start(wired) {
    const { log, db, redis, keys, onRedisError, release } = wired
    const commandMetrics = { times: metrics.mongoTime, errors: metrics.mongoErrors }
    const options = { listsSources: settings.listSources === 'on', metrics: commandMetrics }
    const batchStore = createBatchStore(mongoCommands(db, options))
    const probeCommands = mongoCommands(db, { limitMs: PROBE_MS, metrics: commandMetrics })
    const probeStore = (bytes: number) => commitProbe(probeCommands, bytes)
    const ingest = createIngest({
      storeBatch: batchStore.store,
      bounds: BATCH,
      probeStore,
      metrics,
    })
    const loss = createStoreLoss(probeStore, metrics, log)
    // The check writes, because a front end (such as a mongos or a gateway) answers a ping even if
    // the store behind it is unavailable.
    const watch = createWatchStore(probeStore, ingest.runningMs)
    const outage = () => loss.outage() ?? watch.outage()
    // If the store is slow, the worker stays ready: otherwise a rollout would stop, just while
    // MongoDB is slow.
    const checkMongoDB = async () => {
      await Promise.race([watch.ask(), delay(READY_MS, undefined, { ref: false })])
      const isAvailable = watch.tookMs() !== undefined && outage() === undefined
      return checkOf(isAvailable, reasonWithCode('it commits no writes', watch.failure()))
    }
    opened.sample([metrics.storeAvailable, metrics.storeProbe], async () => {
      metrics.storeAvailable.set(Number((await checkMongoDB()).ok))
      metrics.storeProbe.set((watch.tookMs() ?? 0) / 1000)
    })
    // The admin server starts first, so that it answers while Redis is unavailable.
    const { adminPort } = await wired.serveAdmin(async () => {
      const [ofRedis, mongodb] = await Promise.all([wired.pingRedis(), checkMongoDB()])
      return { redis: ofRedis, mongodb }
    }, ingest.findStuck)
    const { fed, unread } = await wired.watchQueue()

    release('batch store', async () => {
      // If this fails or takes too long, other processes sum the sources of the last batches.
      const settling = batchStore.settle().catch((err) => log.warn({ err }, 'batches.not_settled'))
      const limitMs = Math.min(SETTLE_MS, wired.graceLeftMs(REST_MS))
      await Promise.race([settling, delay(limitMs, undefined, { ref: false })])
    })
    const noteLost = (job: queue.FetchedJob, lost: LostStore) =>
      loss.noteLost(consumer, requestsOf(job), lost, describeJob(job))
    const suppressions = createSuppressionCopy(() => readSuppressions(db))
    let refused = { reason: '', at: Number.NEGATIVE_INFINITY }
    const onUncompleted = (reason: string) => {
      refused = { reason, at: performance.now() }
    }
    const consumer: queue.Consumer = queue.createConsumer({
      ...settings,
      // The same as `hostname` and `pid` in the log.
      name: `${hostname()}:${process.pid}`,
      keys,
      redis,
      concurrency: { interactive: settings.concurrency, bulk: settings.bulkConcurrency },
      // Bounds the list of recently completed jobs, about 150 bytes for each. Look-ups of jobs read
      // the list.
      recentBytes: Math.floor(settings.resultBytes / 8),
      retainedMs: settings.retainedResultSeconds * 1000,
      transientMs: settings.waitSeconds * 2000,
      ready: ingest.ready,
      work: createWork({
        ingest,
        deletions: createDeletions(
          createSourceReads(db),
          queue.createPurge(redis, keys, { sourceIdOf, quoteIdsOf }),
          createDeletionRecords(redis, keys, db),
        ),
        suppressions,
        noteLost,
        noteTimes: createNoteTimes(metrics, durations),
        log,
      }),
      beforeFinalFailure: createBeforeFinalFailure({ ...batchStore, probeStore, noteLost }),
      stored: metrics.stored,
      onFailed: createNoteFailure({
        metrics,
        onUncompleted,
        dashboardUrl: settings.dashboardUrl,
        log,
      }),
      onEvicted: (jobId) => log.warn({ jobId }, 'job.evicted'),
      onError: (err) => log.error({ err }, 'queue.failed'),
      onRedisError,
      onConnected: suppressions.forget,
    })
    // Until MongoDB is available, nobody knows which store this process would write to.
    void consumer.pause()
    void fed.then(consumer.resume)
    wired.sendHeartbeats(() => {
      const slowJobs = consumer.lockedFor(SLOW_MS).slice(0, SLOW_SHOWN)
      return readWorker(metrics, durations, {
        unavailable: outage() ?? unread(),
        storeMs: watch.tookMs(),
        slowJobs,
        activeJobs: consumer.lockedFor(0).length,
        uncompleted: performance.now() - refused.at < UNCOMPLETED_MS ? refused.reason : undefined,
      })
    })
    release('consumer', () => consumer.close(wired.graceLeftMs(KEPT_MS)))

    log.info({ adminPort, ...wired.servers }, 'worker.listening')
  },
})
