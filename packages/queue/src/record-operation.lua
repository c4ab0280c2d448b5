#!lua flags=allow-oom
-- Records the progress of an operation, as long as this process has the lease, and renews the lease. KEYS: the queue's base. ARGV: the lease's value,
-- ms of the lease, ms to keep a finished operation, id, 1 if it is finished, then fields and values. Returns 0 if another process has the lease.
local base, id = KEYS[1], ARGV[4]
if redis.call('GET', base .. 'operations-lease') ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', base .. 'operations-lease', ARGV[2])
local key = base .. 'operation:' .. id
if redis.call('EXISTS', key) == 1 then redis.call('HSET', key, unpack(ARGV, 6)) end
if ARGV[5] == '1' then
  redis.call('LREM', base .. 'operations', 1, id)
  redis.call('PEXPIRE', key, ARGV[3])
end
return 1
