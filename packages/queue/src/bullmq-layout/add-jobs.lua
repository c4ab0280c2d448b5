-- Adds jobs that wait, as BullMQ's own script does with one, without its events. `lane` is the beginning of a lane's
-- keys.
local function writeJob(key, name, data, options, now)
  redis.call('HSET', key, 'name', name, 'data', data, 'opts', options, 'timestamp', now, 'delay', '0', 'priority', '0')
end
-- Sets the marker, which wakes a blocked worker.
local function wakeWorker(lane)
  redis.call('ZADD', lane .. 'marker', 0, '0')
end
-- @param push LPUSH adds behind the jobs that wait, RPUSH in front of them.
local function addWaiting(push, lane, ids)
  redis.call(push, lane .. 'wait', unpack(ids))
  if redis.call('HEXISTS', lane .. 'meta', 'paused') == 0 then wakeWorker(lane) end
end
