-- Removes active jobs that succeeded, as BullMQ's own script does with `removeOnComplete`, without its events. `lane`
-- is the beginning of a lane's keys.
local function lockKey(lane, id)
  return lane .. id .. ':lock'
end
-- @param locks the names of the jobs' locks.
local function removeActive(lane, ids, locks)
  local keys = {}
  for at = 1, #ids do
    local id = ids[at]
    -- Most jobs end in the order in which they were fetched: the oldest active ones are at the end of the list.
    redis.call('LREM', lane .. 'active', -1, id)
    keys[3 * at - 2], keys[3 * at - 1], keys[3 * at] = lane .. id, locks[at], lane .. id .. ':logs'
  end
  redis.call('SREM', lane .. 'stalled', unpack(ids))
  redis.call('DEL', unpack(keys))
  -- If the number of active jobs is limited, another one may become active now.
  if redis.call('HEXISTS', lane .. 'meta', 'concurrency') == 1 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
