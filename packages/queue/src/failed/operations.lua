-- Operations on failed jobs: opened by one process, and carried out by the process that has the lease.
--part open
#!lua flags=allow-oom
-- Adds an operation to the open ones. ARGV: most open operations, ms to keep an operation that is never finished, id,
-- and the operation. Returns 0 if too many are open.
if redis.call('LLEN', KEYS[1] .. 'operations') >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1] .. 'operation:' .. ARGV[3], ARGV[4], 'PX', ARGV[2])
redis.call('RPUSH', KEYS[1] .. 'operations', ARGV[3])
return 1
--part claim
#!lua flags=allow-oom
-- Gets the lease on all operations for a process, or keeps it. ARGV: the lease's value, ms of the lease. Returns the
-- oldest open operation, or '' if none is open or another process has the lease.
local base = KEYS[1]
local id = redis.call('LINDEX', base .. 'operations', 0)
if not id then return '' end
local holder = redis.call('GET', base .. 'operations-lease')
if holder and holder ~= ARGV[1] then return '' end
redis.call('SET', base .. 'operations-lease', ARGV[1], 'PX', ARGV[2])
local operation = redis.call('GET', base .. 'operation:' .. id)
-- Only an operation that was never finished within a month is gone.
if not operation then redis.call('LPOP', base .. 'operations') end
return operation or ''
--part record
#!lua flags=allow-oom
-- Records the progress of an operation, and renews the lease. ARGV: the lease's value, ms of the lease, ms to keep the
-- operation, its id, its state, and the operation. Returns 0 if another process has the lease.
local base, id = KEYS[1], ARGV[4]
if redis.call('GET', base .. 'operations-lease') ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', base .. 'operations-lease', ARGV[2])
redis.call('SET', base .. 'operation:' .. id, ARGV[6], 'PX', ARGV[3])
if ARGV[5] == 'completed' then redis.call('LREM', base .. 'operations', 1, id) end
return 1
