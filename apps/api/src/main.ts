// The API process: reads its settings, connects, builds the app, listens, and stops in order.
import { randomUUID } from 'node:crypto'
import { createKeyring, keyAccess } from '@sluice/credentials/keys'
import { createReadState, openViews, startHeartbeats } from '@sluice/operations'
import {
  checkOf,
  createLogger,
  listen,
  openMetrics,
  openTracing,
  pingWhenAsked,
  readinessOf,
  runUntilStopped,
  settingsOrExit,
  shareFor,
  startAdminServer,
  VERSION,
} from '@sluice/process'
import {
  connectFailFast,
  connectLike,
  observeCommands,
  pingRedis,
  watchLayout,
  watchRedis,
} from '@sluice/process/redis'
import * as queue from '@sluice/queue'
import { connectStore, watchStoreLayout } from '@sluice/store/connect'
import { createSourceReads } from '@sluice/store/read'
import type { ApiDeps } from './api-deps.ts'
import { buildApp } from './app.ts'
import { createBodyParser, createBudget } from './body/read-body.ts'
import { apiMetrics, countProblems, readApi, sampleApi } from './metrics.ts'
import { watchLoopDelay } from './request/middleware.ts'
import { apiRoutes } from './routes/route-table.ts'
import { apiSettings } from './settings.ts'

const settings = settingsOrExit(apiSettings)
const log = createLogger('api', settings.logLevel)

/** Before the grace time ends: 1 s before, open requests must be answered; 0.5 s before, connections are cut. */
const LAST_ANSWERS_MS = 1_000
const AFTER_ANSWERS_MS = 500
/** How often the next few jobs are compared with the load: see `createLoadAudit`. */
const AUDIT_EVERY_MS = 5_000

/** Heartbeats come each second. They share a reading of the queue's state for this time: it may cost Redis 2 ms. */
const PEAKS_EVERY_MS = 5_000

/** The bound of `openSpace`: documents and pages on their way to callers without a key. */
const OPEN_BYTES = 16 * 1024 * 1024

/** The bound of `readSpace`. Less than the connections to MongoDB (20), because checks of keys need some. */
const READS_AT_ONCE = 8

/** A stopping process still serves new requests for the smaller of this time and this share of the grace time. */
const LINGER_MS = 1_500
const LINGER_SHARE = 0.25

await runUntilStopped({
  graceSeconds: settings.shutdownGraceSeconds,
  log,
  async start({ release, stopping, stop }) {
    const onRedisError = (err: Error) => log.warn({ err: err.message }, 'redis.error')
    const opened = openMetrics('api', apiMetrics)
    const { metrics } = opened
    release('tracing', await openTracing('api', settings))
    const store = connectStore(settings.mongodbUrl, { times: metrics.mongoTime, errors: metrics.mongoErrors })
    release('store', () => store.close())
    await watchStoreLayout(store.db, ({ message }) => stop(message))
    const keyring = createKeyring({ ...keyAccess(store.db), onError: (err) => log.warn({ err }, 'keys.not_reached') })
    release('keyring', () => keyring.close())
    const redis = connectFailFast(settings, onRedisError)
    release('redis', () => redis.disconnect())
    observeCommands(redis, { times: metrics.redisTime, errors: metrics.redisErrors })
    const keys = queue.queueKeys(settings.queue)
    await watchRedis(redis, settings, (fault) => log.warn({ fault }, 'redis.unfit'))
    await watchLayout(redis, keys.base, ({ message }) => stop(message))
    const ping = pingWhenAsked(() => pingRedis(redis))
    const results = queue.createResults(redis, keys)
    const replication = queue.openReplication(redis, keys, settings.redisReplicas, onRedisError)
    release('replication', () => replication.close())
    const enqueuer = queue.createEnqueuer(keys, redis, settings)
    const auditLoad = queue.createLoadAudit(redis, keys)
    const noteAudit = (found?: queue.LoadAudit) => found === 'corrected' && log.warn('load.corrected')
    const audits = setInterval(() => auditLoad().then(noteAudit, () => {}), AUDIT_EVERY_MS)
    release('load audits', () => clearInterval(audits))
    const replyReader = connectLike(redis, onRedisError, queue.REPLY_SILENT_MS)
    const replyListener = queue.openReplyListener(randomUUID(), keys, replyReader, results)
    release('reply listener', () => replyListener.close())

    const { tenantShare } = settings
    const parser = createBodyParser(settings)
    release('body parser', parser.close)
    const bodyMemory = createBudget({ maxBytes: settings.bodiesBytes, tenantShare })
    const spillSpace = createBudget({ maxBytes: settings.spillBytes, tenantShare })
    const readiness = async () => {
      const ofRedis = await ping()
      return readinessOf({
        process: checkOf(!stopping.aborted, 'stopping'),
        redis: enqueuer.isAnswering() ? ofRedis : checkOf(false, 'not connected, or silent'),
        replies: checkOf(replyListener.isListening(), 'the reply stream was not read for a moment'),
      })
    }
    const { viewFor, runOperations } = openViews(redis, keys, store.db)
    const stopOperations = runOperations({
      jobsPerSecond: settings.operationJobsPerSecond,
      onStep({ operation: { id, kind } }, { isLast }) {
        if (isLast) log.info({ operationId: id, kind }, 'operation.completed')
      },
      // While Redis is away, its connection's own listener logs that.
      onError: (err) => redis.status === 'ready' && log.warn({ err: err.message }, 'operation.interrupted'),
    })
    release('operations', stopOperations)
    const queueState = createReadState(redis, keys)
    const problems = countProblems(metrics)
    const graceOver = new AbortController()
    const deps: ApiDeps = {
      log,
      metrics,
      noteProblem: problems.note,
      keyring,
      quota: { quotesPerSecond: settings.quotesPerSecond, burstQuotes: settings.burstQuotes },
      enqueuer,
      replyListener,
      confirmReplicated: replication.confirm,
      findClaimed: results.findClaimed,
      retainResult: (id) => results.retainResult(id).catch(() => undefined),
      retainLater: queue.createRetainLater(results),
      findJob: (id) => queue.orUnavailable(queue.findJob(enqueuer.queues, results, id)),
      ...createSourceReads(store.db),
      readSpace: createBudget({ maxBytes: READS_AT_ONCE, tenantShare }),
      imports: queue.createImports(redis, keys),
      viewFor,
      parser,
      bodyMemory,
      openSpace: createBudget({ maxBytes: OPEN_BYTES, tenantShare: 1 }),
      spillSpace,
      loopDelay: watchLoopDelay(),
      limits: settings,
      readiness,
      stopping,
      graceOver: graceOver.signal,
    }
    const admin = await startAdminServer({ ...settings, metrics: opened, readiness })
    release('admin server', admin.close)
    const routes = apiRoutes(settings).map((route) => ({ ...route, handler: route.handler(deps) }))
    const http = await listen(buildApp(deps, routes), { ...settings, maxUnreadBytes: settings.bodiesBytes })
    sampleApi(opened, {
      awaitedJobs: replyListener.awaitedJobs,
      connections: http.connections,
      bodyBytes: bodyMemory.taken,
      queueState,
    })
    const recentQueueState = shareFor(PEAKS_EVERY_MS, queueState)
    const read = () => readApi(metrics, problems.byTenant, recentQueueState)
    release('heartbeats', startHeartbeats(redis, keys, { kind: 'api', version: VERSION }, read))
    release('http server', async () => {
      const graceMs = settings.shutdownGraceSeconds * 1000
      const timers = [
        setTimeout(() => graceOver.abort(), graceMs - LAST_ANSWERS_MS),
        setTimeout(http.cut, graceMs - AFTER_ANSWERS_MS),
      ]
      await http.linger(Math.min(LINGER_MS, graceMs * LINGER_SHARE))
      await http.close()
      timers.forEach(clearTimeout)
    })
    log.info({ port: http.port, adminPort: admin.port, replica: replyListener.replica }, 'api.listening')
  },
})
