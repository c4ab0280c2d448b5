// Starts the dashboard as a process.

import { createKeyring, keyAccess } from '@sluice/credentials/keys'
import { createSessions } from '@sluice/credentials/sessions'
import { openViews, startHeartbeats } from '@sluice/operations'
import {
  checkOf,
  createLogger,
  listen,
  mongoMetrics,
  openMetrics,
  readinessOf,
  runUntilStopped,
  settingsOrExit,
  startAdminServer,
  VERSION,
} from '@sluice/process'
import { connectFailFast, observeCommands, watchLayout } from '@sluice/process/redis'
import * as queue from '@sluice/queue'
import { connectStore } from '@sluice/store/connect'
import { buildDashboard } from './dashboard.ts'
import { openOidc } from './login/oidc.ts'
import { allowedHosts } from './policy.ts'
import { dashboardSettings } from './settings.ts'

const settings = settingsOrExit(dashboardSettings)
const log = createLogger('dashboard', settings.logLevel)

await runUntilStopped({
  graceSeconds: settings.shutdownGraceSeconds,
  log,
  async start({ release, stopping, stop }) {
    const redis = connectFailFast(settings, (err) => log.warn({ err: err.message }, 'redis.error'))
    release('redis', () => redis.disconnect())
    const opened = openMetrics('dashboard', mongoMetrics)
    const { metrics } = opened
    observeCommands(redis, { times: metrics.redisTime, errors: metrics.redisErrors })
    const keys = queue.queueKeys(settings.queue)
    await watchLayout(redis, keys.base, ({ message }) => stop(message))
    const stopHeartbeats = startHeartbeats(redis, keys, { kind: 'dashboard', version: VERSION }, async () => ({}))
    release('heartbeats', stopHeartbeats)
    const store = connectStore(settings.mongodbUrl, { times: metrics.mongoTime, errors: metrics.mongoErrors })
    release('store', () => store.close())
    const keyring = createKeyring({ ...keyAccess(store.db), onError: (err) => log.warn({ err }, 'keys.not_reached') })
    release('keyring', () => keyring.close())

    const readiness = () =>
      readinessOf({
        process: checkOf(!stopping.aborted, 'stopping'),
        redis: checkOf(redis.status === 'ready', 'not connected'),
      })
    const admin = await startAdminServer({ ...settings, metrics: opened, readiness: async () => readiness() })
    release('admin server', admin.close)
    const listening = await listen(
      buildDashboard({
        queues: queue.LANES.map((lane) => queue.openQueue(keys, lane, redis)),
        redis,
        hosts: allowedHosts(settings),
        isReady: () => readiness().ready,
        isSecure: settings.url?.startsWith('https:') ?? false,
        log,
        sessions: createSessions(redis, keys),
        keyring,
        oidc: await openOidc(settings),
        viewFor: openViews(redis, keys, store.db).viewFor,
        traceUrl: settings.traceUrl,
      }),
      { port: settings.port, host: settings.host },
    )
    // A page asks again every few seconds, so cutting its connections loses nothing.
    release('http server', listening.end)
    log.info({ address: listening.address, adminPort: admin.port }, 'dashboard.listening')
  },
})
