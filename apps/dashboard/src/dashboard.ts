// Builds the dashboard: Bull Board on the queues, within the policy, with health checks beside it.
import { createBullBoard } from '@bull-board/api'
import { ExpressAdapter } from '@bull-board/express'
import type { Redis } from '@sluice/queue'
import type { Queue } from 'bullmq'
import express, { type Express } from 'express'
import { allowActions, refuseOtherHosts, refuseOtherSites } from './policy.ts'
import { ShownQueue } from './shown-queue.ts'

/** The page may load only its own files, whatever a payload contains, and no other site may frame it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

interface DashboardDeps {
  queues: readonly Queue[]
  redis: Redis
  /** The host names that browsers may use for it. */
  hosts: readonly string[]
  isReady: () => boolean
}

/** Builds the app with the page, `/livez` and `/readyz`; it does not listen yet. It has no login: everybody who reaches it may use it. */
export function buildDashboard({ queues, redis, hosts, isReady }: DashboardDeps): Express {
  const app = express()
  app.disable('x-powered-by')
  app.use((_request, response, next) => {
    response.set({
      'content-security-policy': CONTENT_SECURITY_POLICY,
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
    next()
  })
  app.get('/livez', (_request, response) => void response.json({ alive: true }))
  app.get('/readyz', (_request, response) => void response.status(isReady() ? 200 : 503).json({ ready: isReady() }))
  app.use(refuseOtherHosts(hosts), refuseOtherSites)
  app.use('/api', (_request, response, next) => {
    // Otherwise BullMQ, and with it the page, would wait for Redis.
    if (isReady()) next()
    else response.status(503).json({ error: 'Redis cannot be reached' })
  })
  app.use(board(queues, redis))
  return app
}

function board(queues: readonly Queue[], redis: Redis): Express {
  const serverAdapter = new ExpressAdapter().setBasePath('/')
  createBullBoard({
    queues: queues.map((queue) => new ShownQueue(queue, redis)),
    serverAdapter,
    options: { uiConfig: { boardTitle: 'Sluice', hideDocsLink: true }, handlerHooks: { before: allowActions } },
  })
  return serverAdapter.getRouter()
}
