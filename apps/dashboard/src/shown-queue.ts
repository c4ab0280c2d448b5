// Reads jobs for the page so that neither their number nor their payloads can fill the memory of the process.
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { type Redis, readShownJob } from '@sluice/queue'
import type { Job, Queue } from 'bullmq'
import { cutPayload } from './policy.ts'

/** Most jobs of each state that one request reads, whatever number it asks for. */
const JOBS_PER_PAGE = 100

type States = Parameters<BullMQAdapter['getJobs']>[0]

/**
 * A queue as Bull Board sees it. Bull Board would read all payloads of a page at once, ten megabytes each at most. Here one job at a time is read, without a
 * large payload, and what is kept of its payload is cut. No action of Bull Board writes a payload back: see `allowActions`.
 */
export class ShownQueue extends BullMQAdapter {
  readonly #queue: Queue
  readonly #redis: Redis

  constructor(queue: Queue, redis: Redis) {
    super(queue, { description: 'Accepted requests on their way into MongoDB' })
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
