// Reads a job for a page that lists many, without its payload.
import { Job, type Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { JOB_OPTIONS, readHistory } from '../job/job.ts'

const HISTORY = ['atm', 'stc', 'progress'] as const
const TEXTS = ['name', 'failedReason', 'stacktrace'] as const
const NUMBERS = ['delay', 'timestamp', 'ats', 'finishedOn', 'processedOn'] as const

/** Returns a job as BullMQ does. Instead of its payload, the job has a note: never write it back. */
export async function readShownJob(queue: Queue, redis: Redis, id: string): Promise<Job | undefined> {
  const key = queue.toKey(id)
  const [atm, stc, progress, name, failedReason, stacktrace] = await redis.hmget(key, ...HISTORY, ...TEXTS)
  if (!name) return undefined
  const numbers = await redis.hmget(key, ...NUMBERS)
  const [delay = 0, timestamp = 0, attemptsStarted = 0, finishedOn = 0, processedOn = 0] = numbers.map(Number)
  const note = 'The payload is not shown here.'
  const content = { id, name, data: JSON.stringify(note), opts: JSON.parse(JOB_OPTIONS), returnvalue: '', priority: 0 }
  const times = { delay, timestamp, finishedOn, processedOn, attemptsStarted }
  const failure = { failedReason: failedReason ?? '', stacktrace: stacktrace ?? '[]' }
  return Job.fromJSON(queue, { ...content, ...times, ...readHistory(atm, stc, progress), ...failure }, id)
}
