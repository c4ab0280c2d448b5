// Starts the dashboard as a process.
import { once } from 'node:events'
import { createServer } from 'node:http'
import {
  checkOf,
  createLogger,
  noteCommands,
  openMetrics,
  readinessOf,
  runUntilStopped,
  settingsOrExit,
  startAdminServer,
  versionOfSluice,
} from '@sluice/ops'
import { connectFailFast, LANES, observeCommands, openQueue, queueKeys, startHeartbeats } from '@sluice/queue'
import { buildDashboard } from './dashboard.ts'
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
    // The dashboard has no metrics of its own.
    const opened = openMetrics('dashboard', {})
    observeCommands(redis, noteCommands(opened.metrics.redisTime, opened.metrics.redisErrors))
    const keys = queueKeys(settings.queue)
    const about = { kind: 'dashboard', version: versionOfSluice() } as const
    release(
      'heartbeats',
      startHeartbeats(redis, keys, about, async () => ({})),
    )
    const queues = LANES.map((lane) => openQueue(keys, lane, redis))

    const hosts = allowedHosts(settings.hosts, settings.host)
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
    const server = createServer(buildDashboard({ queues, redis, hosts, isReady }))
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
