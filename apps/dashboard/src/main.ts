// The dashboard process: builds the pages, and listens.
import { runProcess } from '@sluice/boot'
import { createSessions } from '@sluice/credentials/sessions'
import { openAdmin } from '@sluice/operations'
import { listen, mongoMetrics, openMetrics, settingsOrExit } from '@sluice/process'
import { LANES, openQueue } from '@sluice/queue'
import { buildDashboard } from './dashboard.ts'
import { openOidc } from './login/oidc.ts'
import { allowedHosts } from './policy.ts'
import { dashboardSettings } from './settings.ts'

const settings = settingsOrExit(dashboardSettings)

await runProcess({
  kind: 'dashboard',
  settings,
  opened: openMetrics('dashboard', mongoMetrics),
  async start(wired) {
    const { log, db, redis, keys, release, stopping } = wired
    await wired.watchQueue()
    wired.sendHeartbeats(async () => ({}))
    const keyring = wired.openKeyring()
    let lostRedisAt: Date | undefined
    redis.on('close', () => {
      lostRedisAt ??= new Date()
    })
    redis.on('ready', () => {
      lostRedisAt = undefined
    })
    const isConnected = () => redis.status === 'ready'
    const { adminPort } = await wired.serveAdmin(async () => ({
      // The dashboard can show that Redis refuses commands, so that does not make it unready.
      redis: isConnected() ? { ok: true } : await wired.pingRedis(),
    }))
    const listening = await listen(
      buildDashboard({
        queues: LANES.map((lane) => openQueue(keys, lane, redis)),
        redis,
        hosts: allowedHosts(settings),
        url: settings.url,
        isReady: () => !stopping.aborted && isConnected(),
        redisUnavailableSince: () => lostRedisAt,
        isSecure: settings.url?.startsWith('https:') ?? false,
        log,
        sessions: createSessions(redis, keys),
        keyring,
        oidc: await openOidc(settings),
        viewFor: openAdmin(redis, keys, db).viewFor,
        traceUrl: settings.traceUrl,
      }),
      { port: settings.port, host: settings.host },
    )
    // A page refreshes itself every few seconds, so nothing is lost if its connections are cut.
    release('http server', listening.end)
    log.info({ address: listening.address, adminPort, ...wired.servers }, 'dashboard.listening')
  },
})
