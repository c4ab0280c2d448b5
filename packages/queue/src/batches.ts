import type { Outcome } from '@sluice/contract'
import type { Redis } from 'ioredis'
import type { QueueKeys } from './queue-keys.ts'
import { createScript } from './script.ts'

/** How many items of a batch came to what. */
export type BatchCounts = Record<Outcome | 'failed', number>

/** An item that was not stored: refused with a problem, or failed for good with its job. */
export interface BatchProblem {
  index: number
  externalId?: string
  /** The problem's body as its caller would have got it; none where the item's job failed. */
  refused?: unknown
}

/** What one job of a batch came to. */
export interface BatchPart {
  counts: BatchCounts
  problems: BatchProblem[]
}

/** A batch that nobody waits for, as far as it has got. */
export interface FoundBatch {
  tenant: string
  done: boolean
  received: number
  counts: BatchCounts
  /** At most `PROBLEMS_KEPT`, in the order of the input. */
  problems: BatchProblem[]
}

/** Where batches that nobody waits for are kept track of. */
export interface Batches {
  /** All of a batch is in Redis now: so many items in so many jobs, with what was refused. */
  open(
    id: string,
    batch: { tenant: string; received: number; jobs: number; refused: BatchProblem[]; failed: number },
  ): Promise<void>
  /** Notes what a job of a batch came to; noting it again replaces it. */
  endPart(id: string, jobId: string, part: BatchPart): Promise<void>
  find(id: string): Promise<FoundBatch | undefined>
}

/** Of a batch's problems so many are told. */
export const PROBLEMS_KEPT = 1_000

const UNFINISHED_KEPT_MS = 31 * 24 * 60 * 60 * 1000
const FINISHED_KEPT_MS = 60 * 60 * 1000

/** KEYS: what stands before the batch's keys; ARGV: job, what it came to, ms to keep an unfinished and a finished batch. */
const END_PART = `
local base = KEYS[1]
redis.call('HSET', base .. 'parts', ARGV[1], ARGV[2])
local jobs = redis.call('HGET', base .. 'about', 'jobs')
local done = jobs and redis.call('HLEN', base .. 'parts') >= tonumber(jobs)
redis.call('PEXPIRE', base .. 'parts', done and ARGV[4] or ARGV[3])
if done then redis.call('PEXPIRE', base .. 'about', ARGV[4]) end
return 1
`

/** The jobs of a batch may end before all of it is in Redis. ARGV as above, but for the part: the fields of `about`. */
const OPEN = `
local base = KEYS[1]
redis.call('HSET', base .. 'about', unpack(ARGV, 3))
local done = redis.call('HLEN', base .. 'parts') >= tonumber(redis.call('HGET', base .. 'about', 'jobs'))
local ms = done and ARGV[2] or ARGV[1]
redis.call('PEXPIRE', base .. 'about', ms)
redis.call('PEXPIRE', base .. 'parts', ms)
return 1
`

/** Keeps track of batches in Redis, a field a job, so that a job that ends twice counts once. */
export function createBatches(redis: Redis, { base }: QueueKeys): Batches {
  const open = createScript(redis, OPEN)
  const endPart = createScript(redis, END_PART)
  const keyOf = (id: string) => `${base}batch:${id}:`
  return {
    async open(id, { tenant, received, jobs, refused, failed }) {
      const about = { tenant, received, jobs, failed, refused: JSON.stringify(refused.slice(0, PROBLEMS_KEPT)) }
      await open(keyOf(id), UNFINISHED_KEPT_MS, FINISHED_KEPT_MS, ...Object.entries(about).flat())
    },
    async endPart(id, jobId, part) {
      await endPart(keyOf(id), jobId, JSON.stringify(part), UNFINISHED_KEPT_MS, FINISHED_KEPT_MS)
    },
    async find(id) {
      const [about, parts] = await Promise.all([redis.hgetall(`${keyOf(id)}about`), redis.hvals(`${keyOf(id)}parts`)])
      if (about.tenant === undefined) return undefined
      return summed(
        about.tenant,
        about,
        parts.map((part): BatchPart => JSON.parse(part)),
      )
    },
  }
}

function summed(tenant: string, about: Record<string, string>, parts: BatchPart[]): FoundBatch {
  const counts: BatchCounts = { created: 0, updated: 0, unchanged: 0, failed: Number(about.failed) }
  const problems: BatchProblem[] = JSON.parse(about.refused ?? '[]')
  for (const part of parts) {
    for (const outcome of ['created', 'updated', 'unchanged', 'failed'] as const)
      counts[outcome] += part.counts[outcome]
    problems.push(...part.problems)
  }
  problems.sort((one, other) => one.index - other.index)
  const done = parts.length >= Number(about.jobs)
  return { tenant, done, received: Number(about.received), counts, problems: problems.slice(0, PROBLEMS_KEPT) }
}
