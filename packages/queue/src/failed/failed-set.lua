-- Failed jobs, which BullMQ keeps: recorded within their bound in bytes, found for operators, retried and discarded. The scripts that change the record of
-- a failure include this file.
local function forgetFailure(base, id)
  if redis.call('ZREM', base .. 'failures', id) == 0 then return end
  redis.call('DECRBY', base .. 'failure-bytes', redis.call('HGET', base .. 'failure-sizes', id))
  redis.call('HDEL', base .. 'failure-sizes', id)
end
--part record
#!lua flags=allow-oom
-- Records a job that failed for good. BullMQ keeps it, with its payload; Sluice bounds the bytes of all of them. The job is marked, so that its result is
-- retained if it is retried: its caller gets its id with the failure.
--
-- KEYS: the queue's base. ARGV: BullMQ's key of the job, ms to keep failed jobs, their bytes bound, and the job's id ('' to record none). Returns the ids
-- of the oldest failed jobs that exceed the bound, and forgets them. If it returns any, call it again: one call returns only so many.
--include ../load/load.lua
--include failed-set.lua
local FAILURE_BYTES = 1000 -- Redis's own cost of a failed job, and its small fields.
local EVICTED_AT_ONCE = 100
local base, job, keptMs, bound, id = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if id ~= '' then
  forgetFailure(base, id)
  releaseFailed(base, id, job)
  local size = FAILURE_BYTES
  for _, field in ipairs({'data', 'stacktrace', 'failedReason'}) do size = size + redis.call('HSTRLEN', job, field) end
  redis.call('HSET', job, 'sluice:retained', 1)
  redis.call('ZADD', base .. 'failures', now, id)
  redis.call('HSET', base .. 'failure-sizes', id, size)
  redis.call('INCRBY', base .. 'failure-bytes', size)
end
local excess = {}
for _ = 1, EVICTED_AT_ONCE do
  local oldest = redis.call('ZRANGE', base .. 'failures', 0, 0, 'WITHSCORES')
  if not oldest[1] then break end
  local total = tonumber(redis.call('GET', base .. 'failure-bytes') or '0')
  if total <= bound and tonumber(oldest[2]) >= now - keptMs then break end
  forgetFailure(base, oldest[1])
  excess[#excess + 1] = oldest[1]
end
return excess
--part scan
#!lua flags=allow-oom
-- Reads failed jobs of one lane, newest first, and returns those that may match. The caller checks them exactly: a needle may also occur in a text.
-- One call examines a bounded number of jobs and bytes, so that Redis is never blocked for more than a few milliseconds.
--
-- KEYS: the beginning of the lane's keys. ARGV: the latest and the earliest time of failure (ms), the place to go on after (ms and id; '' for none),
-- most jobs to return, a part of the reason in lower case, then texts that must all occur in the job's data. Returns the place of the last job that was
-- examined (ms and id; '' for both if none is left), and the fields of each job found.
local MOST_EXAMINED = 250
local MOST_BYTES = 1048576
local PAGE = 200
local lane, latest, earliest, afterAt, afterId, most, reason = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), ARGV[6]
local function matches(data, failure)
  if reason ~= '' and not string.find(string.lower(failure), reason, 1, true) then return false end
  for i = 7, #ARGV do
    if not string.find(data, ARGV[i], 1, true) then return false end
  end
  return true
end
local found, examined, bytes, offset = {'', ''}, 0, 0, 0
while true do
  local page = redis.call('ZREVRANGEBYSCORE', lane .. 'failed', latest, earliest, 'WITHSCORES', 'LIMIT', offset, PAGE)
  for i = 1, #page, 2 do
    local id, at = page[i], page[i + 1]
    -- Jobs that failed in the same millisecond are in the descending order of their ids.
    if not (tonumber(at) == afterAt and id >= afterId) then
      if #found - 2 == most or examined == MOST_EXAMINED or bytes > MOST_BYTES then return found end
      found[1], found[2] = at, id
      examined = examined + 1
      local job = redis.call('HMGET', lane .. id, 'data', 'failedReason')
      if job[1] then
        bytes = bytes + #job[1]
        if matches(job[1], job[2] or '') then
          local others = redis.call('HMGET', lane .. id, 'name', 'timestamp', 'atm', 'stc', 'progress')
          found[#found + 1] = {id, at, job[1], job[2], unpack(others)}
        end
      end
    end
  end
  if #page < 2 * PAGE then
    found[1], found[2] = '', ''
    return found
  end
  offset = offset + PAGE
end
--part move
#!lua flags=allow-oom
-- Retries or discards failed jobs, in one step. A job that is not failed (any more) stays as it is, so the script may run again.
--
-- A retry does what BullMQ's own script does, without events, and gives the job a full set of new tries: all tries so far count as earlier ones. The job
-- keeps its data, and with it its place in the order of acceptance. It counts as load again once it is fetched. A discarded job leaves nothing, except a result that expires soon.
--
-- KEYS: the queue's base. ARGV: retry or discard, the number of lanes, the beginning of each lane's keys, then job ids. Returns the ids of the jobs moved.
--include ../load/load.lua
--include failed-set.lua
--include ../replies/results.lua
local base, action, lanes = KEYS[1], ARGV[1], tonumber(ARGV[2])
local function retry(lane, id)
  local key = lane .. id
  local job = redis.call('HMGET', key, 'atm', 'stc', 'progress')
  local progress = job[3] and string.sub(job[3], 1, 1) == '{' and cjson.decode(job[3]) or {}
  progress.earlier = tonumber(job[1] or 0) + math.min(tonumber(job[2] or 0), 1) + (progress.crashes or 0)
  redis.call('HDEL', key, 'finishedOn', 'processedOn', 'failedReason')
  redis.call('HSET', key, 'progress', cjson.encode(progress))
  forgetResult(base, id)
  redis.call('LPUSH', lane .. 'wait', id)
  if redis.call('HEXISTS', lane .. 'meta', 'paused') == 0 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
local function discard(lane, id)
  local key = lane .. id
  redis.call('DEL', key, key .. ':lock', key .. ':logs')
  release(base, {id})
  forgetFailure(base, id)
end
local moved = {}
for i = 3 + lanes, #ARGV do
  local id = ARGV[i]
  for at = 3, 2 + lanes do
    local lane = ARGV[at]
    if redis.call('ZREM', lane .. 'failed', id) == 1 and redis.call('EXISTS', lane .. id) == 1 then
      if action == 'discard' then discard(lane, id) else retry(lane, id) end
      moved[#moved + 1] = id
    end
  end
end
return moved
