// Starts the dashboard as a process.
import { once } from 'node:events'
import { createServer } from 'node:http'
import {
  checkOf,
  createLogger,
  mongoMetrics,
  noteCommands,
  openMetrics,
  readinessOf,
  runUntilStopped,
  settingsOrExit,
  startAdminServer,
  versionOfSluice,
} from '@sluice/ops'
import {
  connectFailFast,
  createFailedJobs,
  createFind,
  createImports,
  createListRecent,
  createOperations,
  createReadHistory,
  createReadOverview,
  createResults,
  createSessions,
  observeCommands,
  openQueue,
  queueKeys,
  startHeartbeats,
} from '@sluice/queue'
import { connectStore } from '@sluice/store/connect'
import { createFindStored, createReadThread } from '@sluice/store/find'
import { createKeyring, keyAccess } from '@sluice/store/keys'
import { buildDashboard } from './dashboard.ts'
import { openOidc } from './login/oidc.ts'
import { createReadGroups } from './pages/failures.ts'
import { allowedHosts } from './policy.ts'
import { dashboardSettings } from './settings.ts'

const settings = settingsOrExit(dashboardSettings)
const log = createLogger({ name: 'dashboard', level: settings.logLevel })

await runUntilStopped({
  graceSeconds: settings.shutdownGraceSeconds,
  log,
  async start({ release, stopping }) {
    const redis = connectFailFast(settings.redisUrl, (err) => log.warn({ err: err.message }, 'redis.error'))
    release('redis', () => redis.disconnect())
    const opened = openMetrics('dashboard', mongoMetrics)
    const { metrics } = opened
    observeCommands(redis, noteCommands(metrics.redisTime, metrics.redisErrors))
    const keys = queueKeys(settings.queue)
    const about = { kind: 'dashboard', version: versionOfSluice() } as const
    release(
      'heartbeats',
      startHeartbeats(redis, keys, about, async () => ({})),
    )
    const queues = { interactive: openQueue(keys, 'interactive', redis), bulk: openQueue(keys, 'bulk', redis) }
    const store = connectStore(settings.mongodbUrl, noteCommands(metrics.mongoTime, metrics.mongoErrors))
    release('store', () => store.close())
    const keyring = createKeyring({ ...keyAccess(store.db), onError: (err) => log.warn({ err }, 'keys.not_reached') })
    release('keyring', () => keyring.close())
    const failedJobs = createFailedJobs(redis, keys, queues)
    const imports = createImports(redis, keys)
    const findStored = createFindStored(store.db, { searchesQuotes: settings.searchQuotes === 'on' })

    const hosts = allowedHosts(settings)
    const isReady = () => redis.status === 'ready' && !stopping.aborted
    const admin = await startAdminServer({
      port: settings.adminPort,
      host: settings.adminHost,
      metrics: opened,
      readiness: async () =>
        readinessOf({
          process: checkOf(!stopping.aborted, 'stopping'),
          redis: checkOf(redis.status === 'ready', 'not connected'),
        }),
    })
    release('admin server', admin.close)
    const server = createServer(
      buildDashboard({
        queues: Object.values(queues),
        redis,
        hosts,
        isReady,
        isSecure: settings.url?.startsWith('https:') ?? false,
        log,
        sessions: createSessions(redis, keys),
        keyring,
        oidc: await openOidc(settings),
        failedJobs,
        readGroups: createReadGroups(failedJobs),
        operations: createOperations(redis, keys),
        imports,
        traceUrl: settings.traceUrl,
        listRecent: createListRecent(redis, keys),
        readThread: createReadThread(store.db),
        readOverview: createReadOverview(redis, keys),
        readHistory: createReadHistory(redis, keys),
        find: createFind(redis, keys, { imports, results: createResults(redis, keys), findStored }),
      }),
    )
    server.listen(settings.port, settings.host)
    await once(server, 'listening')
    release('http server', async () => {
      const closed = once(server, 'close')
      server.close()
      // The page polls every few seconds, so cutting its connections loses nothing.
      server.closeAllConnections()
      await closed
    })
    log.info({ address: server.address(), adminPort: admin.port }, 'dashboard.listening')
  },
})
