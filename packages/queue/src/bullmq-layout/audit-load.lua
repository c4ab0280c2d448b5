-- Takes jobs off the load that left the queue without completing: removed by BullMQ's own tools, or failed while their worker died. Looks at a few jobs
-- each time. KEYS: the queue's base. ARGV: cursor, number of jobs, then the beginning of each lane's keys. Returns the next cursor.
--include load.lua
local base = KEYS[1]
local cursor, found = unpack(redis.call('HSCAN', base .. 'load:jobs', ARGV[1], 'COUNT', ARGV[2]))
local gone = {}
for at = 1, #found, 2 do
  local id, exists = found[at], false
  for lane = 3, #ARGV do
    local job = ARGV[lane] .. id
    if redis.call('ZSCORE', ARGV[lane] .. 'failed', id) then releaseFailed(base, id, job) end
    exists = exists or redis.call('EXISTS', job) == 1
  end
  if not exists then gone[#gone + 1] = id end
end
if #gone > 0 then release(base, gone) end
return cursor
