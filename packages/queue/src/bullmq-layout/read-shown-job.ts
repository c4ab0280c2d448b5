// Reads a job for a page that lists many, without a payload that is large.
import { Job, type Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { IngestJob } from '../job/job.ts'

/** A larger payload is not read. Most threads are far smaller. */
const PAYLOAD_BYTES = 512 * 1024

const FIELDS = [
  'name',
  'opts',
  'progress',
  'delay',
  'priority',
  'timestamp',
  'ats',
  'atm',
  'stc',
  'finishedOn',
  'processedOn',
  'failedReason',
  'stacktrace',
] as const

/** Returns a job as BullMQ does. Instead of a large payload, the job has a note: never write it back. */
export async function readShownJob(queue: Queue<IngestJob>, redis: Redis, id: string): Promise<Job | undefined> {
  const key = queue.toKey(id)
  const bytes = await redis.hstrlen(key, 'data')
  if (bytes <= PAYLOAD_BYTES) return queue.getJob(id)
  const values = await redis.hmget(key, ...FIELDS)
  const text = (name: (typeof FIELDS)[number]) => values[FIELDS.indexOf(name)] ?? undefined
  const number = (name: (typeof FIELDS)[number]) => Number(text(name) ?? 0)
  if (text('name') === undefined) return undefined
  const note = `The payload has ${bytes} bytes and is not shown here. If the job failed, \`sluice jobs show ${id}\` shows it.`
  const json = {
    id,
    name: text('name') ?? '',
    data: JSON.stringify(note),
    opts: JSON.parse(text('opts') ?? '{}'),
    progress: JSON.parse(text('progress') ?? '0'),
    delay: number('delay'),
    priority: number('priority'),
    timestamp: number('timestamp'),
    attemptsStarted: number('ats'),
    attemptsMade: number('atm'),
    stalledCounter: number('stc'),
    finishedOn: number('finishedOn'),
    processedOn: number('processedOn'),
    failedReason: text('failedReason') ?? '',
    stacktrace: text('stacktrace') ?? '[]',
    returnvalue: '',
  }
  return Job.fromJSON(queue, json, id)
}
