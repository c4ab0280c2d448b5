#!lua flags=allow-oom
-- Retries or discards failed jobs, in one step. A job that is not failed (any more) stays as it is, so the script may run again.
--
-- A retry does what BullMQ's own script does, without events, and gives the job a full set of new tries: all tries so far count as earlier ones. The job
-- keeps its data, and with it its place in the order of acceptance. It counts as load again once it is fetched. A discarded job leaves nothing, except a result that expires soon.
--
-- KEYS: the queue's base. ARGV: retry or discard, the number of lanes, the beginning of each lane's keys, then job ids. Returns the ids of the jobs moved.
--include load.lua
--include failures.lua
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
