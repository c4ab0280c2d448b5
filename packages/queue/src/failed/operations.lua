-- Operations: on failed jobs, opened by one process and carried out by the process that has the lease, and on lanes.
-- `operation:ID` is a hash with the operation, its request, and the place where it goes on; `operations` are the ids of the
-- open ones, and `newest-operations` those of the newest ones, open or completed.
local function addOperation(base, id, operation, keptMs, most)
  redis.call('HSET', base .. 'operation:' .. id, 'operation', operation)
  redis.call('PEXPIRE', base .. 'operation:' .. id, keptMs)
  redis.call('LPUSH', base .. 'newest-operations', id)
  redis.call('LTRIM', base .. 'newest-operations', 0, most - 1)
end
--part open
#!lua flags=allow-oom
-- Adds an operation to the open ones. ARGV: most open operations, ms to keep an operation that is never finished, id,
-- operation, and its request. Returns 0 if too many are open.
--include operations.lua
local base, most, keptMs, id = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]
if redis.call('LLEN', base .. 'operations') >= most then return 0 end
addOperation(base, id, ARGV[4], keptMs, most)
redis.call('HSET', base .. 'operation:' .. id, 'request', ARGV[5])
redis.call('RPUSH', base .. 'operations', id)
return 1
--part lane
#!lua flags=allow-oom
-- Pauses or resumes a lane, and records that. ARGV: pause or resume, the lane, the beginning of its keys, who pauses it,
-- ms to keep the operation, most operations to list, its id, and the operation.
--include ../bullmq-layout/jobs.lua#pause
--include operations.lua
local base, kind, lane = KEYS[1], ARGV[1], ARGV[2]
if kind == 'resume' then
  redis.call('HDEL', base .. 'paused', lane)
  resumeLane(ARGV[3])
elseif not isPaused(ARGV[3]) then
  redis.call('HSET', base .. 'paused', lane, ARGV[4])
  pauseLane(ARGV[3])
end
addOperation(base, ARGV[7], ARGV[8], ARGV[5], ARGV[6])
return 1
--part claim
#!lua flags=allow-oom
-- Gets the lease on all operations for a process, or keeps it. ARGV: the lease's value, ms of the lease. Returns the
-- oldest open operation, its request and its place, or nothing if none is open or another process has the lease.
local base = KEYS[1]
local id = redis.call('LINDEX', base .. 'operations', 0)
if not id then return {} end
local holder = redis.call('GET', base .. 'operations-lease')
if holder and holder ~= ARGV[1] then return {} end
redis.call('SET', base .. 'operations-lease', ARGV[1], 'PX', ARGV[2])
local open = redis.call('HMGET', base .. 'operation:' .. id, 'operation', 'request', 'after')
-- Only an operation that was never finished within a month is gone.
if not open[1] then redis.call('LPOP', base .. 'operations') end
return open
--part record
#!lua flags=allow-oom
-- Records the progress of an operation, and renews the lease. ARGV: the lease's value, ms of the lease, ms to keep the
-- operation, its id, its state, the operation, and its place. Returns 0 if another process has the lease.
local base, id, key = KEYS[1], ARGV[4], KEYS[1] .. 'operation:' .. ARGV[4]
if redis.call('GET', base .. 'operations-lease') ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', base .. 'operations-lease', ARGV[2])
redis.call('HSET', key, 'operation', ARGV[6], 'after', ARGV[7])
redis.call('PEXPIRE', key, ARGV[3])
if ARGV[5] == 'completed' then
  redis.call('HDEL', key, 'request', 'after')
  redis.call('LREM', base .. 'operations', 1, id)
end
return 1
