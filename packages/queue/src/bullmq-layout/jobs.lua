-- Jobs as BullMQ keeps them. Each part does for many jobs what BullMQ's own script does for one
-- job. Only failures are written to BullMQ's events. `lane` is the prefix of a lane's keys, and
-- `lane .. id` is a job's key.
--part add
local function writeJob(key, name, data, options, now)
  redis.call('HSET', key, 'name', name, 'data', data, 'opts', options, 'timestamp', now, 'delay', '0', 'priority', '0')
end
-- Adds jobs behind all waiting ones. Unless the lane is paused, sets the marker, which wakes a
-- blocked worker.
local function addWaiting(lane, ids)
  redis.call('LPUSH', lane .. 'wait', unpack(ids))
  if redis.call('HEXISTS', lane .. 'meta', 'paused') == 0 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
-- Adds a waiting job behind the next `count` ones, or behind all if fewer wait. The list `wait`
-- begins with the job that was added last and ends with the next one, so "behind" a job is BEFORE
-- it in the list.
local function insertWaiting(lane, id, count)
  local inFront = redis.call('LINDEX', lane .. 'wait', -count)
  if not inFront then return addWaiting(lane, {id}) end
  redis.call('LINSERT', lane .. 'wait', 'BEFORE', inFront, id)
end
--part fetch
--include jobs.lua#pause
-- This part moves waiting jobs to the active ones and locks them. It ignores the limits in a
-- queue's meta hash.
--
-- Moves delayed jobs that are due to `wait` and, if that has fewer than `most` jobs, the next jobs
-- by priority. Returns when the next delayed job is due (ms), or 0 if no job is delayed.
local function letWait(lane, now, most)
  local wait, delayed, prioritized, counter = lane .. 'wait', lane .. 'delayed', lane .. 'prioritized', lane .. 'pc'
  if redis.call('EXISTS', delayed, prioritized) == 0 then return 0 end
  -- A score of the delayed set is a time (ms) times 0x1000, plus a number below 0x1000.
  local due = redis.call('ZRANGEBYSCORE', delayed, 0, (now + 1) * 0x1000 - 1, 'LIMIT', 0, 1000)
  -- A worker whose clock was ahead set these: no attempt is delayed by minutes.
  local late = redis.call('ZRANGEBYSCORE', delayed, (now + 120000) * 0x1000, '+inf', 'LIMIT', 0, 1000)
  for _, id in ipairs(late) do due[#due + 1] = id end
  if #due > 0 then redis.call('ZREM', delayed, unpack(due)) end
  for _, id in ipairs(due) do
    local priority = tonumber(redis.call('HGET', lane .. id, 'priority') or 0)
    redis.call('HSET', lane .. id, 'delay', 0)
    if priority == 0 then
      redis.call('LPUSH', wait, id)
    else
      redis.call('ZADD', prioritized, priority * 0x100000000 + redis.call('INCR', counter) % 0x100000000, id)
    end
  end
  local next = redis.call('ZPOPMIN', prioritized, math.max(most - redis.call('LLEN', wait), 0))
  for at = 1, #next, 2 do redis.call('LPUSH', wait, next[at]) end
  local first = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
  return first and math.floor(first / 0x1000) or 0
end
local function countWaiting(lane)
  return redis.call('LLEN', lane .. 'wait')
end
-- Moves at most `most` waiting jobs to the active ones. Call it before you read them: if the script
-- then fails, BullMQ finds the jobs stalled, so none is lost.
local function activateWaiting(lane, most)
  local ids = redis.call('RPOP', lane .. 'wait', most) or {}
  if #ids > 0 then redis.call('LPUSH', lane .. 'active', unpack(ids)) end
  return ids
end
-- Returns data, time of enqueueing, starts, attempts, stalls, progress and name. Returns nothing if
-- the job was removed. If another program removed only the data, that is an empty text.
local function readActivated(key)
  local job = redis.call('HMGET', key, 'data', 'timestamp', 'ats', 'atm', 'stc', 'progress', 'name')
  job[1] = job[1] or job[7] and ''
  return job[1] and job
end
local function lockJob(key, token, lockMs, now, starts)
  redis.call('SET', key .. ':lock', token, 'PX', lockMs)
  redis.call('HSET', key, 'processedOn', now, 'ats', starts)
end
local function setAttempts(key, attempts)
  redis.call('HSET', key, 'atm', attempts)
end
local function dropRemoved(lane, id)
  redis.call('LREM', lane .. 'active', 1, id)
end
-- Undoes `activateWaiting` for the last `count` jobs: they become the next ones to be fetched, in
-- the same order as before.
local function returnActivated(lane, count)
  if count > 0 then redis.call('RPUSH', lane .. 'wait', unpack(redis.call('LPOP', lane .. 'active', count))) end
end
-- Sets the marker, which wakes another worker, if more jobs wait.
local function wakeIfJobsWait(lane)
  if redis.call('EXISTS', lane .. 'wait', lane .. 'prioritized') > 0 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
--part remove
local function lockKey(lane, id)
  return lane .. id .. ':lock'
end
-- Removes active jobs that succeeded, and their locks, as BullMQ does with `removeOnComplete`.
local function removeActive(lane, ids, locks)
  local keys = {}
  for at, id in ipairs(ids) do
    -- Searches from the end, where the oldest active jobs are: most jobs end in the order in which
    -- they were fetched.
    redis.call('LREM', lane .. 'active', -1, id)
    keys[3 * at - 2], keys[3 * at - 1], keys[3 * at] = lane .. id, locks[at], lane .. id .. ':logs'
  end
  redis.call('SREM', lane .. 'stalled', unpack(ids))
  redis.call('DEL', unpack(keys))
end
--part states
local function jobExists(lane, id)
  return redis.call('EXISTS', lane .. id) == 1
end
local function isFailed(lane, id)
  return redis.call('ZSCORE', lane .. 'failed', id) ~= false
end
local function hasFailed(lane)
  return redis.call('EXISTS', lane .. 'failed') == 1
end
local function readData(lane, id)
  return redis.call('HGET', lane .. id, 'data') or ''
end
--part failed
-- Moves an active job to the failed ones, as BullMQ does. Writes BullMQ's event, too, because
-- people look for failures in the events.
-- @param stacks of the last failed attempts, as JSON.
local function failActive(lane, id, reason, stacks, progress, now)
  redis.call('DEL', lane .. id .. ':lock')
  redis.call('SREM', lane .. 'stalled', id)
  redis.call('LREM', lane .. 'active', -1, id)
  redis.call('ZADD', lane .. 'failed', now, id)
  redis.call('HINCRBY', lane .. id, 'atm', 1)
  redis.call('HSET', lane .. id, 'failedReason', reason, 'stacktrace', stacks, 'progress', progress, 'finishedOn', now)
  local events = redis.call('HGET', lane .. 'meta', 'opts.maxLenEvents') or 10000
  local event = {'event', 'failed', 'jobId', id, 'failedReason', reason, 'prev', 'active'}
  redis.call('XADD', lane .. 'events', 'MAXLEN', '~', events, '*', unpack(event))
end
-- Returns the bytes of a job's large fields: some of BullMQ's, and the fields `own`, which are
-- Sluice's.
local function sizeOf(lane, id, own)
  local size = 0
  for _, fields in ipairs({{'data', 'stacktrace', 'failedReason'}, own}) do
    for _, field in ipairs(fields) do size = size + redis.call('HSTRLEN', lane .. id, field) end
  end
  return size
end
-- Replaces the reason of a job's failed attempts, and removes their stacks.
local function replaceReason(key, reason)
  redis.call('HDEL', key, 'stacktrace')
  if redis.call('HEXISTS', key, 'failedReason') == 1 then redis.call('HSET', key, 'failedReason', reason) end
end
-- Returns a flat list of id and time (ms) of failed jobs: newest first and, within a millisecond,
-- by descending id.
local function failedBetween(lane, latest, earliest, offset, most)
  return redis.call('ZREVRANGEBYSCORE', lane .. 'failed', latest, earliest, 'WITHSCORES', 'LIMIT', offset, most)
end
-- Returns a list of a failed job's name, reason, time of enqueueing and attempts and, as further
-- values, each of the fields `own`. The list is false if the job does not exist.
local function summaryOf(lane, id, own)
  local job = redis.call('HMGET', lane .. id, 'name', 'failedReason', 'timestamp', 'atm', unpack(own))
  return job[1] and {unpack(job, 1, 4)}, unpack(job, 5, 4 + #own)
end
-- Returns the number of a job's stalls, its progress, and its attempts.
local function historyOf(lane, id)
  local stalls, progress, attempts = unpack(redis.call('HMGET', lane .. id, 'stc', 'progress', 'atm'))
  return tonumber(stalls or 0), progress, tonumber(attempts or 0)
end
-- Removes a job from the failed ones. Returns whether it was failed and still exists.
local function takeFailed(lane, id)
  return redis.call('ZREM', lane .. 'failed', id) == 1 and redis.call('EXISTS', lane .. id) == 1
end
-- Retries a job that `takeFailed` removed, as BullMQ does if it resets `attemptsMade`.
local function retryTaken(lane, id, progress)
  redis.call('HSET', lane .. id, 'progress', progress)
  redis.call('HDEL', lane .. id, 'finishedOn', 'processedOn', 'failedReason', 'atm')
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
local function resumeLane(lane)
  redis.call('HDEL', lane .. 'meta', 'paused')
  redis.call('ZADD', lane .. 'marker', 0, '0')
end
--part inspect
--include jobs.lua#pause
local function countJobs(lane)
  return {
    waiting = redis.call('LLEN', lane .. 'wait') + redis.call('ZCARD', lane .. 'prioritized'),
    delayed = redis.call('ZCARD', lane .. 'delayed'),
    active = redis.call('LLEN', lane .. 'active'),
    failed = redis.call('ZCARD', lane .. 'failed'),
  }
end
local function originOf(lane, id)
  return unpack(redis.call('HMGET', lane .. id, 'timestamp', 'progress'))
end
-- Returns four lists of at most `most` ids: the next jobs to be fetched, those with a priority, the
-- oldest active ones, and delayed ones. The delayed ones are from both ends of their set: jobs with
-- many attempts have the longest delay, and stand at its end.
local function listJobs(lane, most)
  local delayed = redis.call('ZRANGE', lane .. 'delayed', 0, most / 2 - 1)
  local from = math.max(#delayed, redis.call('ZCARD', lane .. 'delayed') - most / 2)
  for _, id in ipairs(redis.call('ZRANGE', lane .. 'delayed', from, -1)) do delayed[#delayed + 1] = id end
  local prioritized = redis.call('ZRANGE', lane .. 'prioritized', 0, most - 1)
  local function last(list) return redis.call('LRANGE', lane .. list, -most, -1) end
  return last('wait'), prioritized, last('active'), delayed
end
-- Returns the ids of at most `most` jobs of a state (waiting, delayed or active), from the index
-- `from`. Waiting and active jobs are in the order of BullMQ's lists: the job that was added last
-- comes first. Jobs with a priority follow the waiting ones. Delayed jobs are in the order in which
-- they become due.
local function idsOf(lane, state, from, most)
  local last = from + most - 1
  if state == 'delayed' then return redis.call('ZRANGE', lane .. 'delayed', from, last) end
  if state == 'active' then return redis.call('LRANGE', lane .. 'active', from, last) end
  local ids, waiting = redis.call('LRANGE', lane .. 'wait', from, last), redis.call('LLEN', lane .. 'wait')
  if #ids < most then
    local first = math.max(from - waiting, 0)
    for _, id in ipairs(redis.call('ZRANGE', lane .. 'prioritized', first, first + most - #ids - 1)) do ids[#ids + 1] = id end
  end
  return ids
end
-- Returns when a job was enqueued, last fetched and moved to the failed ones (ms), its attempts,
-- its progress, and the field `own`, which is Sluice's. Returns nothing if the job does not exist.
local function timesOf(lane, id, own)
  local job = redis.call('HMGET', lane .. id, 'timestamp', 'processedOn', 'finishedOn', 'atm', 'progress', own)
  return job[1] and job
end
-- Returns a job's name, time of enqueueing (ms), attempts, and the reason of its last failed
-- attempt. Returns nothing if the job does not exist.
local function outlineOf(lane, id)
  local job = redis.call('HMGET', lane .. id, 'name', 'timestamp', 'atm', 'failedReason')
  return job[1] and job
end
local function newestFailure(lane)
  return tonumber(redis.call('ZRANGE', lane .. 'failed', -1, -1, 'WITHSCORES')[2])
end
local function oldestFailure(lane)
  return tonumber(redis.call('ZRANGE', lane .. 'failed', 0, 0, 'WITHSCORES')[2])
end
--part unlisted
--include jobs.lua#add
--include jobs.lua#inspect
-- Lets jobs wait again that exist, but are in no list, because somebody renamed or removed one.
-- Returns their number. Asks only for jobs that no lane lists, because Redis runs nothing else
-- meanwhile.
local function listAgain(lanes, ids)
  local isListed, unlisted, relisted = {}, {}, 0
  for _, lane in ipairs(lanes) do
    for list, range in pairs({wait = 'LRANGE', active = 'LRANGE', delayed = 'ZRANGE', prioritized = 'ZRANGE', failed = 'ZRANGE'}) do
      for _, id in ipairs(redis.call(range, lane .. list, 0, -1)) do isListed[id] = true end
    end
  end
  for _, id in ipairs(ids) do
    if not isListed[id] then unlisted[#unlisted + 1] = id end
  end
  table.sort(unlisted)
  for _, lane in ipairs(lanes) do
    local lost = {}
    for _, id in ipairs(unlisted) do
      local key = lane .. id
      if redis.call('EXISTS', key) > redis.call('EXISTS', key .. ':lock') then lost[#lost + 1] = id end
    end
    for at = 1, #lost, 1000 do addWaiting(lane, {unpack(lost, at, math.min(at + 999, #lost))}) end
    relisted = relisted + #lost
  end
  return relisted
end
--part renew
-- Renews the locks of jobs that a worker still works on. A full Redis would refuse BullMQ's own
-- script.
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
--part attempts
#!lua flags=allow-oom
-- Sets the number of attempts of a job that a worker still has locked.
-- ARGV  job id, token, number
local key = KEYS[1] .. ARGV[1]
if redis.call('GET', key .. ':lock') == ARGV[2] then redis.call('HSET', key, 'atm', ARGV[3]) end
return 1
--part shorten
-- Shortens locks and other keys that would last longer than the time for which workers set them:
-- the clock was moved back since or, before a failover, the other server's clock was ahead.
-- ARGV  1    the longest time for which these keys are set (ms)
--       2 …  the other keys
local function shorten(key)
  if redis.call('PTTL', key) > tonumber(ARGV[1]) then redis.call('PEXPIRE', key, ARGV[1]) end
end
for _, id in ipairs(redis.call('LRANGE', KEYS[1] .. 'active', 0, -1)) do shorten(KEYS[1] .. id .. ':lock') end
-- BullMQ's key: while it exists, no worker looks for stalled jobs.
shorten(KEYS[1] .. 'stalled-check')
for at = 2, #ARGV do shorten(ARGV[at]) end
return 1
