// The dashboard process: builds the pages, and listens.
import { createSessions } from '@sluice/credentials/sessions'
import { createFindStored, createReadThread, openOperatorAccess } from '@sluice/operations'
import { checkOf, listen, mongoMetrics, openMetrics, settingsOrExit, shareFor } from '@sluice/process'
import { LANES, openQueue } from '@sluice/queue'
import { runProcess } from '@sluice/wiring'
import { buildDashboard } from './dashboard.ts'
import { openOidc } from './login/oidc.ts'
import { allowedHosts } from './policy.ts'
import { dashboardSettings } from './settings.ts'

const settings = settingsOrExit(dashboardSettings)

/** Pages that refresh themselves share one grouping for this time: grouping 100,000 jobs takes a second or two. */
const GROUPS_SHARED_MS = 2_000

await runProcess({
  kind: 'dashboard',
  settings,
  opened: openMetrics('dashboard', mongoMetrics),
  async start(wired) {
    const { log, db, redis, keys, release, stopping } = wired
    await wired.watchQueue()
    wired.sendHeartbeats(async () => ({}))
    const keyring = wired.openKeyring()
    const operatorAccess = openOperatorAccess(redis, keys, createFindStored(db))
    const isConnected = () => redis.status === 'ready'
    const { adminPort } = await wired.serveAdmin(async () => ({ redis: checkOf(isConnected(), 'not connected') }))
    const listening = await listen(
      buildDashboard({
        queues: LANES.map((lane) => openQueue(keys, lane, redis)),
        redis,
        hosts: allowedHosts(settings),
        isReady: () => !stopping.aborted && isConnected(),
        isSecure: settings.url?.startsWith('https:') ?? false,
        log,
        sessions: createSessions(redis, keys),
        keyring,
        oidc: await openOidc(settings),
        ...operatorAccess,
        readGroups: shareFor(GROUPS_SHARED_MS, () => operatorAccess.failedJobs.groups({})),
        traceUrl: settings.traceUrl,
        readThread: createReadThread(db),
      }),
      { port: settings.port, host: settings.host },
    )
    // A page asks again every few seconds, so cutting its connections loses nothing.
    release('http server', listening.end)
    log.info({ address: listening.address, adminPort }, 'dashboard.listening')
  },
})
