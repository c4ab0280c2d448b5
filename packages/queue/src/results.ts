import type { Redis } from 'ioredis'
import type { Lane } from './ingest-job.ts'
import type { QueueKeys } from './queue-keys.ts'
import type { Receipt } from './receipt.ts'
import { createScript } from './script.ts'

/** How a job ended, as it crosses Redis. */
export interface Ending {
  /** One for each thread; null for one that could not be stored. */
  receipts: (Receipt | null)[]
  /** Why it failed for good, where it did. */
  failure?: string
}

/** A job that has ended, for those who wait for it and those who ask later. */
export interface EndedJob {
  id: string
  lane: Lane
  /** The caller was told the job's id when it was enqueued. */
  told: boolean
  replyTo?: string
  attempts: number
  ending: Ending
  /** The batch that it is a part of, and its items there, where nobody waits for it. */
  batch?: { id: string; items: { index: number; externalId: string }[] }
}

/** How long results stay, and how much room they get. */
export interface ResultBounds {
  /** For results whose id a caller was told, in ms. */
  toldMs: number
  /** For all others, in ms. */
  untoldMs: number
  /** All results together; past it the oldest go first. */
  bytes: number
  /** All failed jobs together, as BullMQ keeps them; past it the oldest are to go first. */
  failedBytes: number
}

/** A waiting replica keeps up with its replies or asks for results itself, so its stream may be cut. */
const REPLIES_KEPT = 10_000
/** An ending that is larger is fetched by the one who waits: a stream of 10,000 must stay small. */
const REPLY_BYTES = 16_384
/** A stream that nobody wrote to for so long belonged to a replica that is gone. */
const REPLIES_KEPT_MS = 600_000

/**
 * Keeps and replies what a batch of jobs came to, in one round trip. The request itself is copied inside Redis from BullMQ's job, which
 * BullMQ removes right after. KEYS: the queue's base; ARGV: now, told ms, untold ms, bytes bound, ms to keep a told mark, bytes bound of
 * failed jobs, then for each job id, its key, how to keep it, attempts, reply stream, ending. Of a failure only the ending is kept, for those who wait, as BullMQ has the job; but from now on the caller knows the id.
 * Gives the failed jobs that there is no room for any more.
 */
const END_JOBS = `
local base, now = KEYS[1], tonumber(ARGV[1])
local function forget(index, kind, upTo, room)
  while true do
    local oldest = redis.call('ZRANGE', base .. index, 0, 0, 'WITHSCORES')
    if not oldest[1] then return end
    local total = tonumber(redis.call('GET', base .. 'result-bytes') or '0')
    local expired = tonumber(oldest[2]) < upTo
    if not expired and total <= room then return end
    redis.call('ZREM', base .. index, oldest[1])
    local id, bytes = string.match(oldest[1], '^(.*)/(%d+)$')
    redis.call('DECRBY', base .. 'result-bytes', bytes)
    if not expired then redis.call('DEL', base .. kind .. id) end
  end
end
for i = 7, #ARGV, 6 do
  local id, job, keep, stream, ending = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 4], ARGV[i + 5]
  local told = false
  if redis.call('ZREM', base .. 'failures', id) == 1 then
    redis.call('DECRBY', base .. 'failure-bytes', redis.call('HGET', base .. 'failure-sizes', id))
    redis.call('HDEL', base .. 'failure-sizes', id)
  end
  if keep == 'failed' then
    redis.call('SET', base .. 'told:' .. id, 1, 'PX', ARGV[5])
    local size = redis.call('HSTRLEN', job, 'data') + 1000
    redis.call('ZADD', base .. 'failures', now, id)
    redis.call('HSET', base .. 'failure-sizes', id, size)
    redis.call('INCRBY', base .. 'failure-bytes', size)
  else
    told = redis.call('DEL', base .. 'told:' .. id) == 1 or keep == 'told'
  end
  local bytes, index = #ending + 200, ''
  if told then
    local data = redis.call('HGET', job, 'data') or redis.call('HGET', base .. 'kept:' .. id, 'data') or ''
    bytes = bytes + #data
    redis.call('DEL', base .. 'result:' .. id)
    redis.call('HSET', base .. 'kept:' .. id, 'ending', ending, 'data', data, 'at', now, 'attempts', ARGV[i + 3])
    redis.call('PEXPIRE', base .. 'kept:' .. id, ARGV[2])
    index = 'results:told'
  else
    redis.call('SET', base .. 'result:' .. id, ending, 'PX', ARGV[3])
    index = 'results:untold'
  end
  if redis.call('ZADD', base .. index, now, id .. '/' .. bytes) == 1 then
    redis.call('INCRBY', base .. 'result-bytes', bytes)
  end
  if stream ~= '' then
    local reply = #ending <= ${REPLY_BYTES} and ending or ''
    redis.call('XADD', base .. 'replies:' .. stream, 'MAXLEN', '~', ${REPLIES_KEPT}, '*', 'id', id, 'ending', reply)
    redis.call('PEXPIRE', base .. 'replies:' .. stream, ${REPLIES_KEPT_MS})
  end
end
forget('results:untold', 'result:', now - ARGV[3], tonumber(ARGV[4]))
forget('results:told', 'kept:', now - ARGV[2], tonumber(ARGV[4]))
local excess = {}
while true do
  local first = redis.call('ZRANGE', base .. 'failures', 0, 0, 'WITHSCORES')
  local oldest = first[1]
  if not oldest then break end
  local total = tonumber(redis.call('GET', base .. 'failure-bytes') or '0')
  if total <= tonumber(ARGV[6]) and tonumber(first[2]) >= now - ARGV[5] then break end
  redis.call('ZREM', base .. 'failures', oldest)
  redis.call('DECRBY', base .. 'failure-bytes', redis.call('HGET', base .. 'failure-sizes', oldest))
  redis.call('HDEL', base .. 'failure-sizes', oldest)
  redis.call('DEL', base .. 'told:' .. oldest)
  excess[#excess + 1] = oldest
end
return excess
`

/** The ending of each job, '' where there is none yet. KEYS: the queue's base; ARGV: job ids. */
const FIND_ENDINGS = `
local found = {}
for i, id in ipairs(ARGV) do
  found[i] = redis.call('GET', KEYS[1] .. 'result:' .. id) or redis.call('HGET', KEYS[1] .. 'kept:' .. id, 'ending') or ''
end
return found
`

/** The job's ending, or else a mark that its caller knows its id now, so that its result will be kept. KEYS: the base; ARGV: job id, ms to keep the mark. */
const TELL = `
local ending = redis.call('GET', KEYS[1] .. 'result:' .. ARGV[1]) or redis.call('HGET', KEYS[1] .. 'kept:' .. ARGV[1], 'ending')
if ending then return ending end
redis.call('SET', KEYS[1] .. 'told:' .. ARGV[1], 1, 'PX', ARGV[2])
return ''
`

/** A job may wait for hours before it ends, and failed ones are kept for thirty days. */
const TOLD_MARK_MS = 31 * 24 * 60 * 60 * 1000

/** A finished job as it is kept for the caller that knows its id. */
export interface KeptResult {
  ending: Ending
  /** The job's payload as it was enqueued. */
  data: string
  at: number
  attempts: number
}

/** Where jobs' results lie once BullMQ is done with them. */
export interface Results {
  /** Keeps what jobs came to and tells those who wait; gives the ids of failed jobs that BullMQ is to forget, because there is no room for them. */
  end(jobs: readonly EndedJob[], bounds: ResultBounds): Promise<string[]>
  /** The endings of those jobs that have ended, by id. */
  find(ids: readonly string[]): Promise<Map<string, Ending>>
  /** The ending of a job, or nothing: then its id may be told, and its result will be kept. One step, so no ending falls between. */
  tell(id: string): Promise<Ending | undefined>
  /** What is kept for the caller that was told this id. */
  kept(id: string): Promise<KeptResult | undefined>
}

/** Keeps results in Redis, beside BullMQ: it prunes its finished set as a whole, and can't tell whose result is still waited for. */
export function createResults(redis: Redis, { base, jobs: jobKeys }: QueueKeys): Results {
  const endJobs = createScript(redis, END_JOBS)
  const findEndings = createScript(redis, FIND_ENDINGS)
  const tell = createScript(redis, TELL)
  return {
    async end(jobs, bounds) {
      const args = jobs.flatMap(({ id, lane, told, attempts, replyTo, ending }) => {
        const keep = ending.failure === undefined ? (told ? 'told' : '') : 'failed'
        return [id, jobKeys[lane] + id, keep, attempts, replyTo ?? '', JSON.stringify(ending)]
      })
      const { toldMs, untoldMs, bytes, failedBytes } = bounds
      const excess = await endJobs(base, Date.now(), toldMs, untoldMs, bytes, TOLD_MARK_MS, failedBytes, ...args)
      return Array.isArray(excess) ? excess.map(String) : []
    },
    async find(ids) {
      const found = await findEndings(base, ...ids)
      const endings = new Map<string, Ending>()
      if (Array.isArray(found))
        ids.forEach((id, at) => void (found[at] && endings.set(id, parseEnding(String(found[at])))))
      return endings
    },
    async tell(id) {
      const ending = String(await tell(base, id, TOLD_MARK_MS))
      return ending === '' ? undefined : parseEnding(ending)
    },
    async kept(id) {
      const { ending, data, at, attempts } = await redis.hgetall(`${base}kept:${id}`)
      if (ending === undefined || data === undefined) return undefined
      return { ending: parseEnding(ending), data, at: Number(at), attempts: Number(attempts) }
    },
  }
}

/** Reads what `end` wrote. */
export function parseEnding(text: string): Ending {
  return JSON.parse(text)
}
