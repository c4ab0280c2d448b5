-- BullMQ's failed jobs, which are retried or discarded. `lane` is the beginning of a lane's keys.
-- Returns the bytes of the fields that may be large.
local function sizeOf(job)
  local size = redis.call('HSTRLEN', job, 'data')
  return size + redis.call('HSTRLEN', job, 'stacktrace') + redis.call('HSTRLEN', job, 'failedReason')
end
-- Takes a job from the failed ones. Returns whether it was failed.
local function takeFailed(lane, id)
  return redis.call('ZREM', lane .. 'failed', id) == 1 and redis.call('EXISTS', lane .. id) == 1
end
-- Retries a job as BullMQ's own script does, without events. All tries so far count as earlier ones.
local function retryJob(lane, id)
  local key = lane .. id
  local job = redis.call('HMGET', key, 'atm', 'stc', 'progress')
  local progress = job[3] and string.sub(job[3], 1, 1) == '{' and cjson.decode(job[3]) or {}
  progress.earlier = tonumber(job[1] or 0) + math.min(tonumber(job[2] or 0), 1) + (progress.crashes or 0)
  redis.call('HDEL', key, 'finishedOn', 'processedOn', 'failedReason')
  redis.call('HSET', key, 'progress', cjson.encode(progress))
  redis.call('LPUSH', lane .. 'wait', id)
  if redis.call('HEXISTS', lane .. 'meta', 'paused') == 0 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
local function removeFailed(lane, id)
  redis.call('DEL', lane .. id, lane .. id .. ':lock', lane .. id .. ':logs')
end
