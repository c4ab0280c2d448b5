import { once } from 'node:events'
import { createServer } from 'node:http'
import { createLogger, runUntilStopped, settingsOrExit } from '@sluice/ops'
import { connectImpatient, queueKeys } from '@sluice/queue'
import { Queue } from 'bullmq'
import { buildDashboard } from './dashboard.ts'
import { dashboardSettings } from './dashboard-settings.ts'

const settings = settingsOrExit(dashboardSettings)
const log = createLogger({ name: 'dashboard', level: settings.logLevel })

await runUntilStopped({
  graceSeconds: settings.shutdownGraceSeconds,
  log,
  async start({ release, stopping }) {
    const redis = connectImpatient(settings.redisUrl, (err) => log.warn({ err: err.message }, 'redis.error'))
    release('redis', () => redis.disconnect())
    const { prefix } = queueKeys(settings.queue)
    const queue = new Queue(settings.queue, { connection: redis, prefix, skipVersionCheck: true })
    queue.on('error', () => {}) // the connection's own listener logs it

    const server = createServer(buildDashboard(queue, () => redis.status === 'ready' && !stopping.aborted))
    server.listen(settings.port, settings.host)
    await once(server, 'listening')
    release('http server', async () => {
      const closed = once(server, 'close')
      server.close()
      // The page asks again every few seconds: nothing is lost by cutting it off.
      server.closeAllConnections()
      await closed
    })
    log.info({ address: server.address() }, 'dashboard.listening')
  },
})
