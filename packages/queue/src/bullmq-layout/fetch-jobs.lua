-- Moves waiting jobs to the active ones and locks them, as BullMQ's own script does with one, without its events.
-- `lane` is the beginning of a lane's keys.
local HARMLESS = {version = true, ['opts.maxLenEvents'] = true}
-- Returns what keeps jobs from being fetched, and when the next delayed job is due (ms, 0 for none). `special`: only
-- BullMQ can fetch the next job, because a delayed job is due, jobs have priorities, or the lane's meta hash has an
-- unknown field: `concurrency`, `max` and `duration` are limits on all workers, and a newer BullMQ may have other ones.
local function obstacleOf(lane, now)
  local delayed = redis.call('ZRANGE', lane .. 'delayed', 0, 0, 'WITHSCORES')
  local due = delayed[2] and math.floor(delayed[2] / 0x1000) or 0
  local isSpecial = due > 0 and due <= now or redis.call('EXISTS', lane .. 'prioritized') == 1
  local obstacle
  local meta = redis.call('HKEYS', lane .. 'meta')
  for at = 1, #meta do
    if meta[at] == 'paused' then obstacle = 'paused' elseif not HARMLESS[meta[at]] then isSpecial = true end
  end
  return isSpecial and 'special' or obstacle, due
end
local function countWaiting(lane)
  return redis.call('LLEN', lane .. 'wait')
end
-- Activates at most `most` jobs before they are read: after an error they count as stalled, and none is lost.
local function activateWaiting(lane, most)
  local ids = redis.call('RPOP', lane .. 'wait', most) or {}
  if #ids > 0 then redis.call('LPUSH', lane .. 'active', unpack(ids)) end
  return ids
end
-- Returns data, time of enqueueing, starts, failed tries, stalls, progress, and what a failed job adds to the load; or
-- nothing if the job was removed.
local function readJob(key)
  local job = redis.call('HMGET', key, 'data', 'timestamp', 'ats', 'atm', 'stc', 'progress', 'load')
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
