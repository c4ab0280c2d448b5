#!lua flags=allow-oom
-- Gets the lease on all operations for a process, or keeps it. KEYS: the queue's base. ARGV: the lease's value, ms of the lease. Returns the id of the
-- oldest open operation, or '' if none is open or another process has the lease.
local base = KEYS[1]
local id = redis.call('LINDEX', base .. 'operations', 0)
if not id then return '' end
local holder = redis.call('GET', base .. 'operations-lease')
if holder and holder ~= ARGV[1] then return '' end
redis.call('SET', base .. 'operations-lease', ARGV[1], 'PX', ARGV[2])
-- Only an operation that was never finished within a month has no record.
if redis.call('EXISTS', base .. 'operation:' .. id) == 0 then
  redis.call('LPOP', base .. 'operations')
  return ''
end
return id
