import type { Redis } from 'ioredis'
import { createGroupCommit, type TakeSome } from './group-commit.ts'
import { type IngestJob, JOB_OPTIONS, jobName, type Lane } from './ingest-job.ts'
import type { QueueKeys } from './queue-keys.ts'
import { createScript } from './script.ts'

/** Threads on their way into the queue. */
export type ToEnqueue = Omit<IngestJob, 'stamp'>

/** A job that is to be added. */
export interface NewJob {
  id: string
  lane: Lane
  job: ToEnqueue
}

/**
 * Gives threads their places in the order of acceptance and adds their jobs, in one step.
 *
 * Redis gives the order, not a replica's clock: the last stamp plus one, or Redis's own time in µs where that is later. So it goes on rising
 * when Redis fails over or loses its data. A job is what BullMQ's own script for adding one leaves behind, but for its events, which nobody here
 * reads: BullMQ's script is made for every kind of job, and takes three times as long. One that is there already, because a broken connection
 * had it sent twice, stays as it is.
 *
 * KEYS: the queue's base; ARGV: now, the jobs' options, then for each job what stands before its lane's keys, its id, its name, how many stamps it wants, and
 * its data, which begins with a stamp of 0. Gives each job's first stamp.
 */
const ENQUEUE_JOBS = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[1] .. 'stamp') or '0')
local stamp = math.max(last + 1, now)
local stamps, added = {}, {}
for i = 3, #ARGV, 5 do
  local lane, id = ARGV[i], ARGV[i + 1]
  local key = lane .. id
  stamps[#stamps + 1] = string.format('%.0f', stamp)
  if redis.call('EXISTS', key) == 0 then
    local data = '{"stamp":' .. stamps[#stamps] .. string.sub(ARGV[i + 4], ${'{"stamp":0'.length + 1})
    redis.call('HSET', key, 'name', ARGV[i + 2], 'data', data, 'opts', ARGV[2], 'timestamp', ARGV[1], 'delay', 0, 'priority', 0)
    added[lane] = added[lane] or {}
    table.insert(added[lane], id)
  end
  stamp = stamp + ARGV[i + 3]
end
redis.call('SET', KEYS[1] .. 'stamp', string.format('%.0f', stamp - 1))
for lane, ids in pairs(added) do
  redis.call('LPUSH', lane .. 'wait', unpack(ids))
  if redis.call('HEXISTS', lane .. 'meta', 'paused') == 0 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
return stamps
`

/** What one script adds at most: it holds Redis up for a millisecond or two. */
const JOBS_AT_ONCE = 100
const CHARACTERS_AT_ONCE = 2_000_000

/** Makes what adds a job and gives the first of its stamps. Jobs that come while a round trip is under way share the next one. */
export function createEnqueueJobs(redis: Redis, { base, jobs: before }: QueueKeys): (job: NewJob) => Promise<number> {
  const enqueueJobs = createScript(redis, ENQUEUE_JOBS)
  const enqueue = createGroupCommit(async (jobs: { args: string[] }[]) => {
    const stamps = await enqueueJobs(base, Date.now(), JOB_OPTIONS, ...jobs.flatMap(({ args }) => args))
    return Array.isArray(stamps) ? stamps.map(Number) : []
  }, takeSome)
  return ({ id, lane, job }) => {
    const { threads, ...others } = job
    const data = JSON.stringify({ stamp: 0, ...others, threads })
    return enqueue({ args: [before[lane], id, jobName(job.threads), String(job.threads.length), data] })
  }
}

const takeSome: TakeSome<{ args: string[] }> = (gathered) => {
  const places: number[] = []
  let characters = 0
  for (const [place, { args }] of gathered.entries()) {
    characters += args.at(-1)?.length ?? 0
    if (places.length === JOBS_AT_ONCE || (places.length > 0 && characters > CHARACTERS_AT_ONCE)) break
    places.push(place)
  }
  return places
}
