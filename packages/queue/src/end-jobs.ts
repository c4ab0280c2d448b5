import type { Redis } from 'ioredis'
import type { Ending } from './ending.ts'
import type { Lane } from './ingest-job.ts'
import type { QueueKeys } from './queue-keys.ts'
import { createScript } from './script.ts'

/** A job may wait for hours before it ends, and failed ones are kept for thirty days. */
export const TOLD_MARK_MS = 31 * 24 * 60 * 60 * 1000

/** A job that has ended, for those who wait for it and those who ask later. */
export interface EndedJob {
  id: string
  lane: Lane
  /** The caller was told the job's id when it was enqueued. */
  told: boolean
  replyTo?: string
  /** Names who holds the job, to BullMQ, where it is done and may go; a failed one stays. */
  token?: string
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

/** A waiting replica keeps up with its replies or asks for results itself, so its stream may be cut. An entry holds the replies to one batch, or a part of them. */
const ENTRIES_KEPT = 2_000
const ENTRY_BYTES = 65_536
/** An ending that is larger is fetched by the one who waits: a stream must stay small. */
const REPLY_BYTES = 16_384
/** A stream that nobody wrote to for so long belonged to a replica that is gone. */
const REPLIES_KEPT_MS = 600_000

/**
 * Keeps and replies what a batch of jobs came to, and takes those that succeeded off the queue, in one step. The request itself is copied inside
 * Redis from BullMQ's job. What is left of the job is what BullMQ's own script for a finished job that need not be kept leaves, but for its
 * events. A job whose lock is no longer this worker's was taken for stalled and is another's now, so it stays.
 *
 * KEYS: the queue's base; ARGV: now, told ms, untold ms, bytes bound, ms to keep a told mark, bytes bound of failed jobs, then for each job id, what
 * stands before its lane's keys, token, how to keep it, attempts, reply stream, ending. Of a failure only the ending is kept, for those who wait, as
 * BullMQ has the job; but from now on the caller knows the id. Gives the failed jobs that there is no room for any more.
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
local function forgetFailure(id)
  if redis.call('ZREM', base .. 'failures', id) == 0 then return end
  redis.call('DECRBY', base .. 'failure-bytes', redis.call('HGET', base .. 'failure-sizes', id))
  redis.call('HDEL', base .. 'failure-sizes', id)
end
local function keepFailure(id, job)
  redis.call('SET', base .. 'told:' .. id, 1, 'PX', ARGV[5])
  local size = redis.call('HSTRLEN', job, 'data') + 1000
  redis.call('ZADD', base .. 'failures', now, id)
  redis.call('HSET', base .. 'failure-sizes', id, size)
  redis.call('INCRBY', base .. 'failure-bytes', size)
end
local function keepTold(id, job, ending, attempts)
  local data = redis.call('HGET', job, 'data') or redis.call('HGET', base .. 'kept:' .. id, 'data') or ''
  redis.call('DEL', base .. 'told:' .. id, base .. 'result:' .. id)
  local new = redis.call('HSET', base .. 'kept:' .. id, 'ending', ending, 'data', data, 'at', now, 'attempts', attempts)
  redis.call('PEXPIRE', base .. 'kept:' .. id, ARGV[2])
  return #data, new == 0
end
local marks, locks = {}, {}
for i = 7, #ARGV, 7 do
  marks[#marks + 1] = base .. 'told:' .. ARGV[i]
  locks[#locks + 1] = ARGV[i + 1] .. ARGV[i] .. ':lock'
end
marks, locks = redis.call('MGET', unpack(marks)), redis.call('MGET', unpack(locks))
local kept, newBytes, seen, done, replies = {told = {}, untold = {}}, 0, {}, {}, {}
for i = 7, #ARGV, 7 do
  local id, lane, token, keep, attempts, stream, ending = unpack(ARGV, i, i + 6)
  local at, job = i / 7, lane .. id
  if marks[at] then forgetFailure(id) end
  if keep == 'failed' then keepFailure(id, job) end
  local index, bytes, before = 'untold', #ending + 200, false
  if keep == 'told' or keep == '' and marks[at] then
    local more
    more, before = keepTold(id, job, ending, attempts)
    index, bytes = 'told', bytes + more
  else
    before = redis.call('SET', base .. 'result:' .. id, ending, 'PX', ARGV[3], 'GET')
  end
  local member = id .. '/' .. bytes
  if not seen[member] and not (before and redis.call('ZSCORE', base .. 'results:' .. index, member)) then newBytes = newBytes + bytes end
  seen[member] = true
  table.insert(kept[index], now)
  table.insert(kept[index], member)
  if token ~= '' and locks[at] == token then
    redis.call('LREM', lane .. 'active', -1, id)
    done[lane] = done[lane] or {ids = {}, keys = {}}
    table.insert(done[lane].ids, id)
    for _, kind in ipairs({'', ':lock', ':logs'}) do table.insert(done[lane].keys, job .. kind) end
  end
  if stream ~= '' then
    local reply = replies[stream] or {bytes = 0}
    if reply.bytes > ${ENTRY_BYTES} then
      redis.call('XADD', base .. 'replies:' .. stream, 'MAXLEN', '~', ${ENTRIES_KEPT}, '*', unpack(reply))
      reply = {bytes = 0}
    end
    table.insert(reply, id)
    table.insert(reply, #ending <= ${REPLY_BYTES} and ending or '')
    reply.bytes = reply.bytes + #reply[#reply]
    replies[stream] = reply
  end
end
for index, members in pairs(kept) do
  if #members > 0 then redis.call('ZADD', base .. 'results:' .. index, unpack(members)) end
end
redis.call('INCRBY', base .. 'result-bytes', newBytes)
for stream, reply in pairs(replies) do
  redis.call('XADD', base .. 'replies:' .. stream, 'MAXLEN', '~', ${ENTRIES_KEPT}, '*', unpack(reply))
  redis.call('PEXPIRE', base .. 'replies:' .. stream, ${REPLIES_KEPT_MS})
end
for lane, jobs in pairs(done) do
  redis.call('SREM', lane .. 'stalled', unpack(jobs.ids))
  redis.call('DEL', unpack(jobs.keys))
  -- Where all workers together may hold so many jobs only, there is room for another one now.
  if redis.call('HEXISTS', lane .. 'meta', 'concurrency') == 1 then redis.call('ZADD', lane .. 'marker', 0, '0') end
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
  forgetFailure(oldest)
  redis.call('DEL', base .. 'told:' .. oldest)
  excess[#excess + 1] = oldest
end
return excess
`

/** Keeps what jobs came to and tells those who wait; gives the ids of failed jobs that BullMQ is to forget, because there is no room for them. */
export type EndJobs = (jobs: readonly EndedJob[], bounds: ResultBounds) => Promise<string[]>

/** Makes what ends jobs: see `EndJobs`. */
export function createEndJobs(redis: Redis, { base, jobs: before }: QueueKeys): EndJobs {
  const endJobs = createScript(redis, END_JOBS)
  return async (jobs, bounds) => {
    const args = jobs.flatMap(({ id, lane, token, told, attempts, replyTo, ending }) => {
      const keep = ending.failure === undefined ? (told ? 'told' : '') : 'failed'
      return [id, before[lane], token ?? '', keep, attempts, replyTo ?? '', JSON.stringify(ending)]
    })
    const { toldMs, untoldMs, bytes, failedBytes } = bounds
    const excess = await endJobs(base, Date.now(), toldMs, untoldMs, bytes, TOLD_MARK_MS, failedBytes, ...args)
    return Array.isArray(excess) ? excess.map(String) : []
  }
}
