import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { IngestJob, Lane } from './ingest-job.ts'
import type { JobProgress } from './job-progress.ts'
import type { QueueKeys } from './queue-keys.ts'
import { createScript } from './script.ts'

/** A job that this process holds: what BullMQ keeps of it, under BullMQ's names. */
export interface HeldJob {
  id: string
  lane: Lane
  /** Names who holds it, to BullMQ. */
  token: string
  data: IngestJob
  /** Names what its one thread says; none where it has several. */
  digest?: string
  timestamp: number
  attemptsStarted: number
  attemptsMade: number
  stalledCounter: number
  progress: JobProgress
}

/** What taking from a lane came to. */
export interface Taken {
  jobs: HeldJob[]
  /** The lane holds what only BullMQ knows how to take: jobs whose delay is over, or with a priority, or a limit on all workers. */
  special: boolean
  /** When the next delayed job is due, in ms since 1970. */
  nextAt?: number
}

/**
 * Past so many bytes of data no more jobs are taken at a time. A worker's memory must not depend on how large they are; and those who wait must not wait long
 * for what came in bulk, where a job may hold one thread or fifty.
 */
const BYTES_AT_ONCE = { waiting: 16 * 1024 * 1024, bulk: 512 * 1024 }

/**
 * Takes waiting jobs, as BullMQ's own script takes one, but for its events: moves them to those that are active and locks each. Where there is more, the
 * marker that wakes other workers is set. KEYS: what stands before the lane's keys; ARGV: token, ms to lock for, now (where it is not known yet: nothing), how many at
 * most, and past how many bytes no more.
 * Gives whether BullMQ itself has to be asked, when the next delayed job is due, and a list for each job.
 */
const TAKE_JOBS = `
local lane, now = KEYS[1], tonumber(ARGV[3])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local meta = redis.call('HMGET', lane .. 'meta', 'paused', 'concurrency', 'max')
local delayed = redis.call('ZRANGE', lane .. 'delayed', 0, 0, 'WITHSCORES')
local due = delayed[2] and math.floor(delayed[2] / 0x1000) or 0
if meta[2] or meta[3] or (due > 0 and due <= now) or redis.call('EXISTS', lane .. 'prioritized') == 1 then return {1, due} end
local taken = {0, due}
if meta[1] then return taken end
local bytes = 0
for _ = 1, tonumber(ARGV[4]) do
  local id = redis.call('RPOPLPUSH', lane .. 'wait', lane .. 'active')
  if not id then return taken end
  local key = lane .. id
  local job = redis.call('HMGET', key, 'data', 'timestamp', 'ats', 'atm', 'stc', 'progress')
  if job[1] then
    job[3] = (job[3] or 0) + 1
    redis.call('SET', key .. ':lock', ARGV[1], 'PX', ARGV[2])
    redis.call('HSET', key, 'processedOn', string.format('%.0f', now), 'ats', job[3])
    table.insert(job, 1, id)
    taken[#taken + 1] = job
    bytes = bytes + #job[2]
    if bytes >= tonumber(ARGV[5]) then break end
  else
    redis.call('LREM', lane .. 'active', 1, id)
  end
end
if redis.call('EXISTS', lane .. 'wait') == 1 then redis.call('ZADD', lane .. 'marker', 0, '0') end
return taken
`

/** Takes at most so many jobs of a lane, and locks them; `now` is when they are taken, in ms since 1970, or undefined where that is not known yet. */
export type TakeJobs = (lane: Lane, token: string, limit: number, now?: number) => Promise<Taken>

/** @param lockMs how long a job stays locked unless its lock is renewed. */
export function createTakeJobs(redis: Redis, { jobs: before }: QueueKeys, lockMs: number): TakeJobs {
  const takeJobs = createScript(redis, TAKE_JOBS)
  return async (lane, token, limit, now) => {
    const [special, due, ...jobs] = asList(
      await takeJobs(before[lane], token, lockMs, now ?? '', limit, BYTES_AT_ONCE[lane]),
    )
    return {
      jobs: jobs.map((job) => heldJob(lane, token, asList(job))),
      special: special === 1,
      ...(Number(due) > 0 && { nextAt: Number(due) }),
    }
  }
}

function heldJob(
  lane: Lane,
  token: string,
  [id, data, timestamp, started, made, stalled, progress]: unknown[],
): HeldJob {
  const text = String(data)
  const job: IngestJob = JSON.parse(text)
  const isKept = typeof progress === 'string' && progress.startsWith('{')
  return {
    id: String(id),
    lane,
    token,
    data: job,
    ...digestOf(job, () => text.slice(text.indexOf(THREADS) + THREADS.length, -1)),
    timestamp: Number(timestamp),
    attemptsStarted: Number(started),
    attemptsMade: Number(made ?? 0),
    stalledCounter: Number(stalled ?? 0),
    progress: isKept ? JSON.parse(progress) : {},
  }
}

/** A job's threads are the last of its data: see `createEnqueueJobs`. In no string of JSON does a quotation mark stand so. */
const THREADS = '"threads":'

/** @param text gives the job's threads as JSON. */
export function digestOf({ threads }: IngestJob, text: () => string): { digest?: string } {
  return threads.length === 1 ? { digest: hash('sha256', text(), 'base64url').slice(0, DIGEST_LENGTH) } : {}
}

/** 144 bits, as in ids. */
const DIGEST_LENGTH = 24

function asList(reply: unknown): unknown[] {
  return Array.isArray(reply) ? reply : []
}
