-- Records a job that failed for good. BullMQ keeps it, with its payload; Sluice bounds the bytes of all of them. The job is marked, so that its result is
-- retained if it is retried: its caller gets its id with the failure.
--
-- KEYS: the queue's base. ARGV: job id, BullMQ's key of the job, now (ms), ms to keep the mark, the bytes bound of failed jobs. Returns the ids of the
-- oldest failed jobs that exceed the bound.
--include load.lua
local base, id, now = KEYS[1], ARGV[1], tonumber(ARGV[3])
local function forget(failed)
  if redis.call('ZREM', base .. 'failures', failed) == 0 then return end
  redis.call('DECRBY', base .. 'failure-bytes', redis.call('HGET', base .. 'failure-sizes', failed))
  redis.call('HDEL', base .. 'failure-sizes', failed)
end
forget(id)
releaseFailed(base, id, ARGV[2])
redis.call('SET', base .. 'retain:' .. id, 1, 'PX', ARGV[4])
local size = redis.call('HSTRLEN', ARGV[2], 'data') + 1000
redis.call('ZADD', base .. 'failures', now, id)
redis.call('HSET', base .. 'failure-sizes', id, size)
redis.call('INCRBY', base .. 'failure-bytes', size)
local excess = {}
while true do
  local oldest = redis.call('ZRANGE', base .. 'failures', 0, 0, 'WITHSCORES')
  if not oldest[1] then break end
  local total = tonumber(redis.call('GET', base .. 'failure-bytes') or '0')
  if total <= tonumber(ARGV[5]) and tonumber(oldest[2]) >= now - ARGV[4] then break end
  forget(oldest[1])
  redis.call('DEL', base .. 'retain:' .. oldest[1])
  excess[#excess + 1] = oldest[1]
end
return excess
