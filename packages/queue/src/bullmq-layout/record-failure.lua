#!lua flags=allow-oom
-- Records a job that failed for good. BullMQ keeps it, with its payload; Sluice bounds the bytes of all of them. The job is marked, so that its result is
-- retained if it is retried: its caller gets its id with the failure.
--
-- KEYS: the queue's base. ARGV: BullMQ's key of the job, ms to keep failed jobs, their bytes bound, and the job's id ('' to record none). Returns the ids
-- of the oldest failed jobs that exceed the bound, and forgets them. If it returns any, call it again: one call returns only so many.
--include load.lua
--include failures.lua
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
