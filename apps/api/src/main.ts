// The API process: enqueues jobs, waits for replies, builds the app and listens.
import { randomUUID } from 'node:crypto'
import { runProcess } from '@sluice/boot'
import { createReadState, openAdmin, watchRedisLoss } from '@sluice/operations'
import { checkOf, listen, openMetrics, settingsOrExit, shareFor } from '@sluice/process'
import { connectLike } from '@sluice/process/redis'
import * as queue from '@sluice/queue'
import { createExportThreads } from '@sluice/store/export'
import { createSourceReads } from '@sluice/store/read'
import type { ApiDeps } from './api-deps.ts'
import { buildApp } from './app.ts'
import { createBodyParser } from './body/body-parser.ts'
import {
  apiMetrics,
  countProblems,
  countRefusedKeys,
  readApi,
  sampleApi,
  watchLoopDelay,
} from './metrics.ts'
import { createBudget, createTenantTurns } from './request/shares.ts'
import { apiRoutes } from './routes/route-table.ts'
import { apiSettings } from './settings.ts'

const settings = settingsOrExit(apiSettings)
const opened = openMetrics('api', apiMetrics)
const { metrics } = opened

/**
 * LAST_ANSWERS_MS before the grace time ends, open requests are answered. AFTER_ANSWERS_MS before
 * it ends, connections are cut.
 */
const LAST_ANSWERS_MS = 1_000
const AFTER_ANSWERS_MS = 500
/** The load is compared with the next jobs of the queue this often: see `createLoadAudit`. */
const AUDIT_EVERY_MS = 5_000
/**
 * Heartbeats are sent each second, but read the queue's state only this often, because a reading
 * may cost Redis 2 ms.
 */
const PEAKS_EVERY_MS = 5_000
/**
 * The bound of `publicBudget`: documents and pages that callers without a key may read in a second.
 */
const OPEN_BYTES = 16 * 1024 * 1024
/**
 * The bound of `readBudget`. It is less than the number of connections to MongoDB (20), because
 * checks of keys need some.
 */
const READS_AT_ONCE = 8
/**
 * A stopping process continues to accept requests for LINGER_MS, or for this share of the grace
 * time if that is shorter.
 */
const LINGER_MS = 1_500
const LINGER_SHARE = 0.25

await runProcess({
  kind: 'api',
  settings,
  opened,
  async start(wired) {
    const { log, db, redis, keys, onRedisError, release, stopping } = wired
    const keyring = wired.openKeyring()
    const { isWorkedOn } = await wired.watchQueue()
    const largeReads = redis.duplicate().on('error', onRedisError)
    release('large reads', () => largeReads.disconnect())
    const results = queue.createResults(redis, keys, largeReads)
    const replication = queue.openReplication(redis, keys, settings.redisReplicas, onRedisError)
    release('replication', () => replication.close())
    const enqueuer = queue.createEnqueuer(keys, redis, settings)
    const auditLoad = queue.createLoadAudit(redis, keys)
    const noteAudit = (found?: queue.LoadAudit) => {
      if (found === 'corrected') log.warn('load.corrected')
      if (found === 'relisted') log.warn('jobs.relisted')
    }
    const audits = setInterval(() => auditLoad().then(noteAudit, () => {}), AUDIT_EVERY_MS)
    release('load audits', () => clearInterval(audits))
    const replyReader = connectLike(redis, onRedisError, queue.REPLY_SILENT_MS)
    const replyListener = queue.openReplyListener(randomUUID(), keys, replyReader, results)
    release('reply listener', () => replyListener.close())

    const { tenantShare } = settings
    const parser = createBodyParser(settings)
    release('body parser', parser.close)
    const bodyBudget = createBudget({ maxBytes: settings.bodiesBytes, tenantShare })
    const { viewFor, erasures, suppressions, runOperations } = openAdmin(redis, keys, db)
    const stopOperations = runOperations({
      jobsPerSecond: settings.operationJobsPerSecond,
      retainDays: settings.retainDays,
      enqueue: enqueuer.enqueue,
      findResults: results.find,
      onStep({ operation: { id, kind } }, { isLast }) {
        if (isLast) log.info({ operationId: id, kind }, 'operation.completed')
      },
      // While Redis is unavailable, the connection's own listener logs the error.
      onError: (err) =>
        redis.status === 'ready' && log.warn({ err: err.message }, 'operation.interrupted'),
    })
    release('operations', stopOperations)
    const redisLoss = watchRedisLoss(redis, keys, db, {
      onLoss: (loss) => log.error(loss, 'redis.lost'),
      onError: (err) => log.warn({ err: err.message }, 'mark.not_renewed'),
    })
    release('redis loss', redisLoss.close)
    const queueState = createReadState(redis, keys)
    const problems = countProblems(metrics)
    const refusedKeys = countRefusedKeys(metrics)
    const graceOver = new AbortController()
    const { adminPort, readiness } = await wired.serveAdmin(async () => {
      const ofRedis = await wired.pingRedis()
      return {
        redis: ofRedis.ok ? checkOf(enqueuer.isAnswering(), 'silent') : ofRedis,
        replies: checkOf(replyListener.isListening(), 'the reply stream was not read for a moment'),
        workers: checkOf(isWorkedOn(), 'no worker has ever worked on its queue (QUEUE)'),
      }
    })
    const deps: ApiDeps = {
      log,
      metrics,
      noteProblem: problems.note,
      noteRefusedKey: refusedKeys.note,
      keyring,
      quota: { quotesPerSecond: settings.quotesPerSecond, burstQuotes: settings.burstQuotes },
      enqueuer,
      replyListener,
      confirmReplicated: replication.confirm,
      findClaimed: results.findClaimed,
      retainResult: results.retainResult,
      retainLater: queue.createRetainLater(results),
      findJob: (tenant, id) =>
        queue.orUnavailable(queue.findJob(enqueuer.queues, results, tenant, id)),
      readRetained: (id) => queue.orUnavailable(results.readRetained(id)),
      ...createSourceReads(db),
      exportThreads: createExportThreads(db),
      readBudget: createBudget({ maxBytes: READS_AT_ONCE, tenantShare }),
      readTurns: createTenantTurns(),
      postTurns: createTenantTurns(),
      imports: queue.createImports(redis, keys),
      viewFor,
      erasures,
      suppressions,
      parser,
      bodyBudget,
      publicBudget: createBudget({ maxBytes: OPEN_BYTES, tenantShare: 1, restMs: 1_000 }),
      spillBudget: createBudget({ maxBytes: settings.spillBytes, tenantShare }),
      loopDelay: watchLoopDelay(),
      settings,
      readiness,
      stopping,
      graceOver: graceOver.signal,
    }
    const routes = apiRoutes(settings).map((route) => ({ ...route, handler: route.handler(deps) }))
    const http = await listen(buildApp(deps, routes), {
      ...settings,
      maxUnreadBytes: settings.bodiesBytes,
    })
    const { maxConnections, openFiles, needed } = http.bounds
    if (maxConnections < settings.maxConnections) {
      const fault = `${openFiles} files may be open: too few for MAX_CONNECTIONS=${settings.maxConnections}`
      const fix = `ulimit -n ${needed}  # before the start; systemd: LimitNOFILE=, Docker: --ulimit nofile=`
      log.warn({ maxConnections, fault, fix }, 'connections.lowered')
    }
    sampleApi(opened, {
      awaitedJobs: replyListener.awaitedJobs,
      connections: http.connections,
      bodyBytes: bodyBudget.taken,
      redisLostAt: redisLoss.lostAt,
      queueState,
    })
    const recentQueueState = shareFor(PEAKS_EVERY_MS, queueState)
    const { queueThreads, queueBytes, redisReplicas } = settings
    wired.sendHeartbeats(async () => {
      const queueBounds = {
        threads: queueThreads,
        bytes: queueBytes,
        interactive: enqueuer.mostInteractive(),
      }
      const bounds = { queueBounds, tenantShare, redisReplicas }
      const reading = await readApi(metrics, problems.refusals, recentQueueState, bounds)
      return { ...reading, refusedKeys: refusedKeys.list() }
    })
    release('http server', async () => {
      const timers = [
        setTimeout(() => graceOver.abort(), wired.graceLeftMs(LAST_ANSWERS_MS)),
        setTimeout(http.cut, wired.graceLeftMs(AFTER_ANSWERS_MS)),
      ]
      await http.linger(Math.min(LINGER_MS, wired.graceLeftMs(0) * LINGER_SHARE))
      await http.close()
      timers.forEach(clearTimeout)
    })
    log.info(
      { port: http.port, adminPort, replica: replyListener.replica, ...wired.servers },
      'api.listening',
    )
  },
})
