// Builds the dashboard: Bull Board on the queues, within the policy, with health checks beside it. It reads jobs so
// that neither their number nor their payloads can fill the memory.

import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { ExpressAdapter } from '@bull-board/express'
import { type Redis, readShownJob } from '@sluice/queue'
import type { Job, Queue } from 'bullmq'
import express, { type Express } from 'express'
import { allowActions, cutPayload, refuseOtherHosts, refuseOtherSites } from './policy.ts'

/** The page may load only its own files, so no payload can load others, and no other site may frame it. */
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

/**
 * Builds the app with the page, `/livez` and `/readyz`; it does not listen yet. It has no login: everybody who reaches
 * it may use it.
 */
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

/** Most jobs of each state that one request reads. */
const JOBS_PER_PAGE = 100

type States = Parameters<BullMQAdapter['getJobs']>[0]

/**
 * A queue as Bull Board sees it. Bull Board would read all payloads of a page at once, ten megabytes each at most. Here
 * one job at a time is read, without a large payload, and its payload is cut. No action of Bull Board writes a payload
 * back: see `allowActions`.
 */
export class ShownQueue extends BullMQAdapter {
  readonly #queue: Queue
  readonly #redis: Redis

  constructor(queue: Queue, redis: Redis) {
    super(queue, { description: 'Accepted requests on their way into MongoDB', allowRetries: false })
    this.#queue = queue
    this.#redis = redis
  }

  override async getJob(id: string): Promise<Job | undefined> {
    const job = await readShownJob(this.#queue, this.#redis, id)
    if (job !== undefined) job.data = cutPayload(job.data)
    return job
  }

  override async getJobs(states: States, start = 0, end = Number.POSITIVE_INFINITY): Promise<Job[]> {
    const jobs: Job[] = []
    // BullMQ has no such state any more, and Bull Board asks for it only where it had.
    const known = states.filter((state) => state !== 'paused')
    for (const id of await this.#queue.getRanges(known, start, Math.min(end, start + JOBS_PER_PAGE - 1))) {
      const job = await this.getJob(id)
      if (job !== undefined) jobs.push(job)
    }
    return jobs
  }
}
