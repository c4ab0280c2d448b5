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
-- Takes at most `most` ids from the waiting ones: they must be activated, or put back.
local function takeWaiting(lane, most)
  return redis.call('RPOP', lane .. 'wait', most) or {}
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
-- Activates jobs, in the order in which they were fetched, and puts back the ids from `back` on, in theirs.
local function activate(lane, active, ids, back)
  if #active > 0 then redis.call('LPUSH', lane .. 'active', unpack(active)) end
  for at = #ids, back, -1 do redis.call('RPUSH', lane .. 'wait', ids[at]) end
end
-- Sets the marker, which wakes another worker, if more jobs wait.
local function wakeIfJobsWait(lane)
  if redis.call('EXISTS', lane .. 'wait') == 1 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
