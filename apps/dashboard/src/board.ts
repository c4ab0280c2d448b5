// Bull Board under `/board`: a read-only view of the BullMQ queues. It reads few jobs at a time,
// and no payloads, so that it can't fill the memory.

import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { ExpressAdapter } from '@bull-board/express'
import type { Redis } from '@sluice/process/redis'
import { readShownJob } from '@sluice/queue'
import type { Job, Queue } from 'bullmq'
import ejs from 'ejs'
import express, { type Express } from 'express'
import { contentSecurityPolicy } from './policy.ts'

/** Bull Board's page has styles in attributes, and a `base` element. */
const CONTENT_SECURITY_POLICY = contentSecurityPolicy({
  style: "'self' 'unsafe-inline'",
  form: "'none'",
  base: "'self'",
})

/** Bull Board's page would load a font from another host. */
const FONT_LINK = /<link href="https:[^>]*>/g

export interface BoardDeps {
  queues: readonly Queue[]
  redis: Redis
}

export function buildBoard({ queues, redis }: BoardDeps): Express {
  const serverAdapter = new ExpressAdapter().setBasePath('/board')
  createBullBoard({
    queues: queues.map((queue) => new ShownQueue(queue, redis)),
    serverAdapter,
    options: { uiConfig: { boardTitle: 'Sluice', hideDocsLink: true } },
  })
  const board: Express = serverAdapter.getRouter()
  board.engine('ejs', (path, options, callback) =>
    ejs.renderFile(path, options, (error, page) => callback(error, page?.replace(FONT_LINK, ''))),
  )
  const app = express()
  app.use(({ method }, response, next) => {
    response.set('content-security-policy', CONTENT_SECURITY_POLICY)
    if (method === 'GET' || method === 'HEAD') next()
    else response.status(405).json({ error: 'Bull Board changes nothing here.' })
  })
  return app.use(board)
}

/** One request reads at most this number of jobs of each state. */
const JOBS_PER_PAGE = 100

type States = Parameters<BullMQAdapter['getJobs']>[0]

/**
 * A queue as Bull Board sees it, without payloads. The dashboard's own page of a job shows
 * payloads.
 */
class ShownQueue extends BullMQAdapter {
  readonly #queue: Queue
  readonly #redis: Redis

  constructor(queue: Queue, redis: Redis) {
    super(queue, {
      description: 'Accepted requests on their way into MongoDB',
      readOnlyMode: true,
      externalJobUrl: ({ id }) => ({ displayText: 'The job in Sluice', href: `/jobs/${id}` }),
    })
    this.#queue = queue
    this.#redis = redis
  }

  override async getJob(id: string): Promise<Job | undefined> {
    return readShownJob(this.#queue, this.#redis, id)
  }

  override async getJobs(
    states: States,
    start = 0,
    end = Number.POSITIVE_INFINITY,
  ): Promise<Job[]> {
    const jobs: Job[] = []
    // Bull Board asks for the state `paused`, which BullMQ no longer has.
    const known = states.filter((state) => state !== 'paused')
    for (const id of await this.#queue.getRanges(
      known,
      start,
      Math.min(end, start + JOBS_PER_PAGE - 1),
    )) {
      const job = await this.getJob(id)
      if (job !== undefined) jobs.push(job)
    }
    return jobs
  }
}
