import { randomUUID } from 'node:crypto'
import { createThreadParser } from '@sluice/contract'
import { createLogger, createMetrics, runUntilStopped, settingsOrExit, startAdminServer } from '@sluice/ops'
import {
  connectFailFast,
  connectRetrying,
  createEnqueuer,
  createImports,
  createResults,
  findJob,
  openReplyListener,
  QueueUnavailableError,
  queueKeys,
  watchEvictionPolicy,
} from '@sluice/queue'
import { connectStore } from '@sluice/store/connect'
import { createKeyring, keyAccess } from '@sluice/store/keys'
import { buildApi } from './api.ts'
import { createApiMetrics } from './api-metrics.ts'
import { apiSettings } from './api-settings.ts'
import { queueUnavailable } from './enqueue.ts'
import { listen } from './listen.ts'
import { routes } from './routes.ts'
import { createTell } from './tell.ts'

const settings = settingsOrExit(apiSettings)
const log = createLogger({ name: 'api', level: settings.logLevel })

/** What is kept of the grace time for sending the last answers, and of that for what follows once they are sent, in ms. */
const LAST_ANSWERS_MS = 1_000
const AFTER_ANSWERS_MS = 500

await runUntilStopped({
  graceSeconds: settings.shutdownGraceSeconds,
  log,
  async start({ release, stopping }) {
    const onRedisError = (err: Error) => log.warn({ err: err.message }, 'redis.error')
    const store = connectStore(settings.mongodbUrl)
    release('store', () => store.close())
    const keyring = createKeyring({ ...keyAccess(store.db), onError: (err) => log.warn({ err }, 'keys.not_reached') })
    release('keyring', () => keyring.close())
    const redis = connectFailFast(settings.redisUrl, onRedisError)
    release('redis', () => redis.disconnect())
    await watchEvictionPolicy(redis)

    const keys = queueKeys(settings.queue)
    const results = createResults(redis, keys)
    const enqueuer = createEnqueuer(keys, redis)
    const room = openReplyListener(randomUUID(), keys, connectRetrying(settings.redisUrl, onRedisError), results)
    release('waiting room', () => room.close())

    const metrics = createMetrics({ prefix: 'sluice_', process: 'api' })
    const counters = createApiMetrics(metrics)
    metrics.sampledGauge({ name: 'waiting_callers', help: 'Callers that wait for their job.', read: room.size })
    const isReady = () => redis.status === 'ready' && !stopping.aborted
    const graceOver = new AbortController()
    const find = (id: string) => findJob(enqueuer.queues, results, id)
    const app = buildApi(
      { keyring, metrics: counters, log, isStopping: () => stopping.aborted },
      routes({
        limits: settings,
        bodyBytes: settings.bodyBytes,
        waitSeconds: settings.waitSeconds,
        parseThread: createThreadParser(settings),
        enqueuer,
        room,
        tell: createTell(results, find),
        findJob: async (id) => find(id).catch((error) => Promise.reject(new QueueUnavailableError(error))),
        admit() {
          if (redis.status !== 'ready') throw queueUnavailable()
        },
        isReady,
        isStopping: () => stopping.aborted,
        batches: createImports(redis, keys),
        batchBytes: settings.batchBytes,
        spillBytes: settings.spillBytes,
        metrics: counters,
        stopping: graceOver.signal,
      }),
    )
    const admin = await startAdminServer({
      port: settings.adminPort,
      host: settings.adminHost,
      metrics,
      isReady: async () => ({ ready: isReady(), checks: { redis: redis.status === 'ready' } }),
    })
    release('admin server', admin.close)
    const http = await listen(app, settings)
    release('http server', async () => {
      const graceMs = settings.shutdownGraceSeconds * 1000
      const timers = [
        setTimeout(() => graceOver.abort(), graceMs - LAST_ANSWERS_MS),
        setTimeout(http.cut, graceMs - AFTER_ANSWERS_MS),
      ]
      await http.close()
      timers.forEach(clearTimeout)
    })
    log.info({ port: http.port, adminPort: admin.port, replica: room.replica }, 'api.listening')
  },
})
