-- Gives threads their stamps (their places in the order of acceptance) and adds their jobs, in one step.
--
-- Redis gives the order, not a replica's clock: the last stamp plus one, or Redis's own time in µs if that is later. So stamps go on rising when Redis
-- fails over or loses its data. A job gets the keys that BullMQ's own script gives it, without events, which nobody reads. A job that exists already,
-- because a broken connection had it sent twice, stays as it is.
--
-- KEYS: the queue's base. ARGV: now (ms), the jobs' options, then for each job: the beginning of its lane's keys, id, name, number of stamps, and data,
-- which begins with a stamp of 0. Returns each job's first stamp.
local DATA_AFTER_STAMP = #'{"stamp":0' + 1
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[1] .. 'stamp') or '0')
local stamp = math.max(last + 1, now)
local stamps, added = {}, {}
for i = 3, #ARGV, 5 do
  local lane, id = ARGV[i], ARGV[i + 1]
  local key = lane .. id
  stamps[#stamps + 1] = string.format('%.0f', stamp)
  if redis.call('EXISTS', key) == 0 then
    local data = '{"stamp":' .. stamps[#stamps] .. string.sub(ARGV[i + 4], DATA_AFTER_STAMP)
    redis.call('HSET', key, 'name', ARGV[i + 2], 'data', data, 'opts', ARGV[2], 'timestamp', ARGV[1], 'delay', 0, 'priority', 0)
    added[lane] = added[lane] or {}
    table.insert(added[lane], id)
  end
  stamp = stamp + ARGV[i + 3]
end
redis.call('SET', KEYS[1] .. 'stamp', string.format('%.0f', stamp - 1))
for lane, ids in pairs(added) do
  redis.call('LPUSH', lane .. 'wait', unpack(ids))
  if redis.call('HEXISTS', lane .. 'meta', 'paused') == 0 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
return stamps
