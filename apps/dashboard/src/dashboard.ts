// Builds the dashboard: Bull Board on the queues, within the policy, with health checks beside it.
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { ExpressAdapter } from '@bull-board/express'
import type { Queue } from 'bullmq'
import express, { type Express } from 'express'
import { allowActions, cutPayload, refuseCrossSite } from './policy.ts'

/** The page may load only its own files, whatever a payload contains, and no other site may frame it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/** Builds the app with the page, `/livez` and `/readyz`; it does not listen yet. It has no login: everybody who reaches it may use it. */
export function buildDashboard(queues: readonly Queue[], isReady: () => boolean): Express {
  const app = express()
  app.disable('x-powered-by')
  app.use((_request, response, next) => {
    response.set({
      'content-security-policy': CONTENT_SECURITY_POLICY,
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    next()
  })
  app.get('/livez', (_request, response) => void response.json({ alive: true }))
  app.get('/readyz', (_request, response) => void response.status(isReady() ? 200 : 503).json({ ready: isReady() }))
  app.use('/api', (_request, response, next) => {
    // Otherwise BullMQ, and with it the page, would wait for Redis.
    if (isReady()) next()
    else response.status(503).json({ error: 'Redis can not be reached' })
  })
  app.use(refuseCrossSite, board(queues))
  return app
}

function board(queues: readonly Queue[]): Express {
  const serverAdapter = new ExpressAdapter().setBasePath('/')
  createBullBoard({
    queues: queues.map(shown),
    serverAdapter,
    options: { uiConfig: { boardTitle: 'Sluice', hideDocsLink: true }, handlerHooks: { before: allowActions } },
  })
  return serverAdapter.getRouter()
}

function shown(queue: Queue): BullMQAdapter {
  const adapter = new BullMQAdapter(queue, { description: 'Accepted requests on their way into MongoDB' })
  adapter.setFormatter('data', cutPayload)
  return adapter
}
