-- Jobs as BullMQ keeps them. Each part does for many jobs what BullMQ's own script does for one, without its events.
-- `lane` is the beginning of a lane's keys, and `lane .. id` a job's key.
--part add
local function writeJob(key, name, data, options, now)
  redis.call('HSET', key, 'name', name, 'data', data, 'opts', options, 'timestamp', now, 'delay', '0', 'priority', '0')
end
-- Adds waiting jobs behind those that wait, and sets the marker, which wakes a blocked worker.
local function addWaiting(lane, ids)
  redis.call('LPUSH', lane .. 'wait', unpack(ids))
  if redis.call('HEXISTS', lane .. 'meta', 'paused') == 0 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
-- Adds a waiting job behind the first `place` ones, or behind all if fewer wait.
local function insertWaiting(lane, id, place)
  local last = redis.call('LINDEX', lane .. 'wait', -place)
  if not last then return addWaiting(lane, {id}) end
  -- The first ones stand at the end of the list.
  redis.call('LINSERT', lane .. 'wait', 'BEFORE', last, id)
end
--part fetch
-- Moves waiting jobs to the active ones and locks them.
local HARMLESS = {version = true, ['opts.maxLenEvents'] = true}
-- Returns what keeps jobs from being fetched (`bullmq`, `paused` or nil), and when the next delayed job is due (ms, 0
-- for none). `bullmq`: only BullMQ can fetch the next job, because a delayed job is due, jobs have priorities, or the
-- lane's meta hash has an unknown field. `concurrency`, `max` and `duration` limit all workers; there may be others.
local function obstacleOf(lane, now)
  local due, needsBullMQ, obstacle = 0, false, nil
  if redis.call('EXISTS', lane .. 'delayed', lane .. 'prioritized') > 0 then
    local delayed = redis.call('ZRANGE', lane .. 'delayed', 0, 0, 'WITHSCORES')
    due = delayed[2] and math.floor(delayed[2] / 0x1000) or 0
    needsBullMQ = due > 0 and due <= now or redis.call('EXISTS', lane .. 'prioritized') == 1
  end
  for _, field in ipairs(redis.call('HKEYS', lane .. 'meta')) do
    if field == 'paused' then obstacle = 'paused' elseif not HARMLESS[field] then needsBullMQ = true end
  end
  return needsBullMQ and 'bullmq' or obstacle, due
end
local function countWaiting(lane)
  return redis.call('LLEN', lane .. 'wait')
end
-- Activates at most `most` jobs. Call it before reading them: after an error, they count as stalled, and none is lost.
local function activateWaiting(lane, most)
  local ids = redis.call('RPOP', lane .. 'wait', most) or {}
  if #ids > 0 then redis.call('LPUSH', lane .. 'active', unpack(ids)) end
  return ids
end
-- Returns data, time of enqueueing, starts, failed tries, stalls, progress and name; or nothing if the job was removed.
local function readJob(key)
  local job = redis.call('HMGET', key, 'data', 'timestamp', 'ats', 'atm', 'stc', 'progress', 'name')
  return job[1] and job
end
local function lockJob(key, token, lockMs, now, starts)
  redis.call('SET', key .. ':lock', token, 'PX', lockMs)
  redis.call('HSET', key, 'processedOn', now, 'ats', starts)
end
local function dropRemoved(lane, id)
  redis.call('LREM', lane .. 'active', 1, id)
end
-- Puts back the jobs that were activated last, in their order.
local function putBack(lane, count)
  if count > 0 then redis.call('RPUSH', lane .. 'wait', unpack(redis.call('LPOP', lane .. 'active', count))) end
end
-- Sets the marker, which wakes another worker, if more jobs wait.
local function wakeIfJobsWait(lane)
  if redis.call('EXISTS', lane .. 'wait') == 1 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
--part remove
local function lockKey(lane, id)
  return lane .. id .. ':lock'
end
-- Removes active jobs that succeeded, as BullMQ does with `removeOnComplete`.
-- @param locks the names of the jobs' locks.
local function removeActive(lane, ids, locks)
  local keys = {}
  for at, id in ipairs(ids) do
    -- Searches from the end, where the oldest active jobs are: most jobs end in the order in which they were fetched.
    redis.call('LREM', lane .. 'active', -1, id)
    keys[3 * at - 2], keys[3 * at - 1], keys[3 * at] = lane .. id, locks[at], lane .. id .. ':logs'
  end
  redis.call('SREM', lane .. 'stalled', unpack(ids))
  redis.call('DEL', unpack(keys))
  -- If the number of active jobs is limited, a worker may fetch another job now.
  if redis.call('HEXISTS', lane .. 'meta', 'concurrency') == 1 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
--part states
local function jobExists(lane, id)
  return redis.call('EXISTS', lane .. id) == 1
end
local function isFailed(lane, id)
  return redis.call('ZSCORE', lane .. 'failed', id) ~= false
end
-- Returns the result of a job that failed for good, or nothing. A retried job may still have the field `failure`.
local function failureOf(lane, id)
  local failedAt, result = unpack(redis.call('HMGET', lane .. id, 'finishedOn', 'failure'))
  return failedAt and result
end
-- Returns the next cursor, and ids and times (ms) of some failed jobs.
local function scanFailed(lane, cursor, most)
  return unpack(redis.call('ZSCAN', lane .. 'failed', cursor, 'COUNT', most))
end
local function readData(lane, id)
  return redis.call('HGET', lane .. id, 'data') or ''
end
--part failed
-- Returns whether a job failed at this time (ms) and was neither retried nor removed since.
local function isFailedSince(lane, id, at)
  return tonumber(redis.call('ZSCORE', lane .. 'failed', id)) == tonumber(at)
end
-- Returns the bytes of those fields of a job that may be large.
local function sizeOf(lane, id)
  local size = 0
  for _, field in ipairs({'data', 'stacktrace', 'failedReason', 'failure', 'tries', 'failedThreads'}) do
    size = size + redis.call('HSTRLEN', lane .. id, field)
  end
  return size
end
-- Removes a job from the failed ones. Returns whether it was failed and still exists.
local function takeFailed(lane, id)
  return redis.call('ZREM', lane .. 'failed', id) == 1 and redis.call('EXISTS', lane .. id) == 1
end
-- Retries a job that `takeFailed` removed, at the time `now` (ms). All tries so far count as earlier ones.
local function retryTaken(lane, id, now)
  local key = lane .. id
  local job = redis.call('HMGET', key, 'atm', 'stc', 'progress')
  local progress = job[3] and string.sub(job[3], 1, 1) == '{' and cjson.decode(job[3]) or {}
  progress.earlier = tonumber(job[1] or 0) + math.min(tonumber(job[2] or 0), 1) + (progress.crashes or 0)
  progress.retriedAt = now
  redis.call('HDEL', key, 'finishedOn', 'processedOn', 'failedReason', 'failure')
  redis.call('HSET', key, 'progress', cjson.encode(progress))
  addWaiting(lane, {id})
end
local function removeTaken(lane, id)
  redis.call('DEL', lane .. id, lane .. id .. ':lock', lane .. id .. ':logs')
end
--part pause
local function isPaused(lane)
  return redis.call('HEXISTS', lane .. 'meta', 'paused') == 1
end
-- A paused lane still accepts jobs, and workers finish the jobs that they have.
local function pauseLane(lane)
  redis.call('HSET', lane .. 'meta', 'paused', 1)
  redis.call('DEL', lane .. 'marker')
end
-- Wakes a blocked worker, which looks for waiting and for delayed jobs.
local function resumeLane(lane)
  redis.call('HDEL', lane .. 'meta', 'paused')
  redis.call('ZADD', lane .. 'marker', 0, '0')
end
--part inspect
--include jobs.lua#pause
-- Counts the jobs of a lane by state.
local function countJobs(lane)
  return {
    waiting = redis.call('LLEN', lane .. 'wait') + redis.call('ZCARD', lane .. 'prioritized'),
    delayed = redis.call('ZCARD', lane .. 'delayed'),
    active = redis.call('LLEN', lane .. 'active'),
    failed = redis.call('ZCARD', lane .. 'failed'),
  }
end
-- Returns when a job was accepted or, if it was retried by hand, last retried (ms), and whether it was retried.
local function startOf(lane, id)
  local accepted, progress = unpack(redis.call('HMGET', lane .. id, 'timestamp', 'progress'))
  local retried = progress and string.match(progress, '"retriedAt":(%d+)')
  return tonumber(retried or accepted or nil), retried and true
end
-- Returns the ids of at most `most` jobs each: the next ones to be fetched, those with a priority, active ones, and
-- delayed ones. Takes these from both ends of the delayed set: jobs with many tries have the longest delay and stand at
-- its end.
local function listJobs(lane, most)
  local delayed = redis.call('ZRANGE', lane .. 'delayed', 0, most / 2 - 1)
  local from = math.max(#delayed, redis.call('ZCARD', lane .. 'delayed') - most / 2)
  for _, id in ipairs(redis.call('ZRANGE', lane .. 'delayed', from, -1)) do delayed[#delayed + 1] = id end
  local waiting, prioritized = redis.call('LRANGE', lane .. 'wait', -most, -1), redis.call('ZRANGE', lane .. 'prioritized', 0, most - 1)
  return waiting, prioritized, redis.call('LRANGE', lane .. 'active', -most, -1), delayed
end
local function oldestFailure(lane)
  return tonumber(redis.call('ZRANGE', lane .. 'failed', 0, 0, 'WITHSCORES')[2])
end
--part renew
-- Renews the locks of jobs that a worker still works on. A full Redis would refuse BullMQ's own script.
-- ARGV  1    ms to lock for
--       2 …  id and token of each job
for i = 2, #ARGV, 2 do
  local lock = KEYS[1] .. ARGV[i] .. ':lock'
  if redis.call('GET', lock) == ARGV[i + 1] then
    redis.call('PEXPIRE', lock, ARGV[1])
    redis.call('SREM', KEYS[1] .. 'stalled', ARGV[i])
  end
end
return 1
--part shorten
-- Shortens the locks of a lane, and other keys, that last longer than any of them is ever set for: a server whose clock
-- was ahead has set them.
-- ARGV  1    the longest time for which these keys are set (ms)
--       2 …  the other keys
-- Returns the number of keys that it has shortened.
local shortened = 0
local function shorten(key)
  if redis.call('PTTL', key) <= tonumber(ARGV[1]) then return end
  redis.call('PEXPIRE', key, ARGV[1])
  shortened = shortened + 1
end
for _, id in ipairs(redis.call('LRANGE', KEYS[1] .. 'active', 0, -1)) do shorten(KEYS[1] .. id .. ':lock') end
-- BullMQ's own key: while it exists, nobody looks for stalled jobs.
shorten(KEYS[1] .. 'stalled-check')
for at = 2, #ARGV do shorten(ARGV[at]) end
return shortened
--part scan
#!lua flags=allow-oom
-- Reads failed jobs of one lane, newest first, and returns those that may match. The caller checks them exactly,
-- because a text that is searched for may also stand elsewhere in the data. One call examines a bounded number of jobs
-- and bytes, so that Redis is never blocked for more than a few milliseconds. Reads the data of a job only if texts are
-- searched for, or if the job's failure was not recorded.
-- ARGV  1-2  latest and earliest time of failure (ms)
--       3-4  the job to continue after: time of failure (ms) and id ('' for none)
--       5    most jobs to return
--       6    a part of the reason
--       7    tenant ('' for all)
--       8 …  texts that must all occur in the job's data
-- Returns
--       1-2  the last job that was examined: time of failure (ms) and id ('' for both if none is left)
--       3 …  the fields of each job found
--include ../load/load.lua#release
local MOST_EXAMINED, MOST_BYTES, PAGE = 250, 1048576, 200
local lane, latest, earliest, afterAt, afterId = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local most, reason, tenant = tonumber(ARGV[5]), string.lower(ARGV[6]), ARGV[7]
local found, examined, bytes, offset = {'', ''}, 0, 0, 0
-- Returns nothing if the job can't match. Else returns its tenant and threads (an empty table if its failure was not
-- recorded), and its data ('' if it was not read).
local function match(key, failure, packed)
  if not string.find(string.lower(failure), reason, 1, true) then return end
  local job = packed and read(packed) or {}
  if tenant ~= '' and job.tenant and job.tenant ~= tenant then return end
  if packed and #ARGV == 7 then return job, '' end
  local data = redis.call('HGET', key, 'data')
  bytes = bytes + #data
  for i = 8, #ARGV do
    if not string.find(data, ARGV[i], 1, true) then return end
  end
  return job, data
end
while true do
  local page = redis.call('ZREVRANGEBYSCORE', lane .. 'failed', latest, earliest, 'WITHSCORES', 'LIMIT', offset, PAGE)
  for i = 1, #page, 2 do
    local id, at = page[i], page[i + 1]
    -- Jobs that failed in the same millisecond are in the descending order of their ids.
    if not (tonumber(at) == afterAt and id >= afterId) then
      if #found - 2 == most or examined == MOST_EXAMINED or bytes > MOST_BYTES then return found end
      found[1], found[2] = at, id
      examined = examined + 1
      local key = lane .. id
      local fields = redis.call('HMGET', key, 'load', 'name', 'failedReason', 'timestamp', 'atm', 'stc', 'progress')
      if fields[2] then
        local job, data = match(key, fields[3] or '', fields[1])
        if job then found[#found + 1] = {id, at, job.tenant or '', job.threads or 0, data, unpack(fields, 2)} end
      end
    end
  end
  if #page < 2 * PAGE then
    found[1], found[2] = '', ''
    return found
  end
  offset = offset + PAGE
end
