-- Operations on lanes and on failed jobs. Any process opens an operation on failed jobs, and the
-- process that has the lease carries it out. The hash `operation:ID` has the operation, its
-- request, the place at which it continues, and the counts that failed-set.lua writes. The list
-- `operations` has the ids of the open operations, and `newest-operations` the ids of the newest
-- ones, open or completed.
local function addOperation(base, id, operation, keptMs, most)
  redis.call('HSET', base .. 'operation:' .. id, 'operation', operation)
  redis.call('PEXPIRE', base .. 'operation:' .. id, keptMs)
  redis.call('LPUSH', base .. 'newest-operations', id)
  redis.call('LTRIM', base .. 'newest-operations', 0, most - 1)
end
--part open
#!lua flags=allow-oom
-- Adds an operation to the open ones.
-- ARGV  1  most open operations, and most operations in `newest-operations`
--       2  ms to keep an operation that is never finished
--       3  id
--       4  operation
--       5  its request
-- Returns 0 if too many are open, otherwise 1.
--include operations.lua
local base, most, keptMs, id = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]
if redis.call('LLEN', base .. 'operations') >= most then return 0 end
addOperation(base, id, ARGV[4], keptMs, most)
redis.call('HSET', base .. 'operation:' .. id, 'request', ARGV[5])
redis.call('RPUSH', base .. 'operations', id)
return 1
--part lane
#!lua flags=allow-oom
-- Pauses or resumes a lane, and records that as an operation. The hash `paused` has the pause of
-- each paused lane (JSON): by, since, why and, if it ends automatically (see fetch.lua), untilMs.
-- ARGV  1  pause or resume
--       2  the lane
--       3  prefix of its keys
--       4  the pause (JSON): by, since, and if given why and seconds
--       5  ms to keep the operation
--       6  most operations to list
--       7  id of the operation
--       8  operation
-- Returns the lane's pause, or '' if the lane was resumed.
--include @sluice/queue/bullmq-layout/jobs.lua#pause
--include operations.lua
local MOST_REASONS = 1000 -- Bytes. Above it, a newer reason replaces the older ones.
local base, kind, lane, record = KEYS[1], ARGV[1], ARGV[2], ''
-- Joins a new pause with the current one. The current one's `by` and `since` stay, and both reasons
-- are kept. The lane is paused until both have ended.
local function join(first, pause)
  -- After Redis lost a pause, each of several APIs restores it.
  if first.since == pause.since and first.by == pause.by then return pause end
  local ends = first.untilMs and pause.untilMs
  first.untilMs = ends and math.max(first.untilMs, ends)
  local before, own = first.why or '', pause.why and pause.by .. ': ' .. pause.why
  if own then first.why = before ~= '' and #before < MOST_REASONS and before .. '; ' .. own or own end
  return first
end
if kind == 'resume' then
  redis.call('HDEL', base .. 'paused', lane)
  resumeLane(ARGV[3])
else
  local pause, first = cjson.decode(ARGV[4]), isPaused(ARGV[3]) and redis.call('HGET', base .. 'paused', lane)
  if pause.seconds then pause.untilMs = (redis.call('TIME')[1] + pause.seconds) * 1000 end
  pause.seconds = nil
  record = cjson.encode(first and join(cjson.decode(first), pause) or pause)
  redis.call('HSET', base .. 'paused', lane, record)
  pauseLane(ARGV[3])
end
addOperation(base, ARGV[7], ARGV[8], ARGV[5], ARGV[6])
return record
--part claim
#!lua flags=allow-oom
-- Gets the lease on all operations for a process, or renews it.
-- ARGV  1  the lease's value
--       2  ms of the lease
-- Returns the oldest open operation, its request and its place. Returns nothing if none is open, or
-- if another process has the lease.
local base = KEYS[1]
local id = redis.call('LINDEX', base .. 'operations', 0)
if not id then return {} end
local holder = redis.call('GET', base .. 'operations-lease')
if holder and holder ~= ARGV[1] then return {} end
redis.call('SET', base .. 'operations-lease', ARGV[1], 'PX', ARGV[2])
local open = redis.call('HMGET', base .. 'operation:' .. id, 'operation', 'request', 'after')
-- The operation's hash has expired, because it was not finished within a month.
if not open[1] then redis.call('LPOP', base .. 'operations') end
return open
--part renew
#!lua flags=allow-oom
-- Renews the lease, if this process has it.
-- ARGV  1  the lease's value
--       2  ms of the lease
local lease = KEYS[1] .. 'operations-lease'
if redis.call('GET', lease) == ARGV[1] then redis.call('PEXPIRE', lease, ARGV[2]) end
--part record
#!lua flags=allow-oom
-- Records the progress of an operation, and renews the lease.
-- ARGV  1  the lease's value
--       2  ms of the lease
--       3  ms to keep the operation
--       4  id of the operation
--       5  its state
--       6  operation
--       7  its place
--       8  1 if other operations take a step before its next one, because it may take hours
-- Returns 0 if another process has the lease, otherwise 1.
local base, id, key = KEYS[1], ARGV[4], KEYS[1] .. 'operation:' .. ARGV[4]
if redis.call('GET', base .. 'operations-lease') ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', base .. 'operations-lease', ARGV[2])
redis.call('HSET', key, 'operation', ARGV[6], 'after', ARGV[7])
redis.call('PEXPIRE', key, ARGV[3])
if ARGV[5] == 'completed' then
  redis.call('HDEL', key, 'request', 'after')
  redis.call('LREM', base .. 'operations', 1, id)
elseif ARGV[8] == '1' then
  redis.call('LREM', base .. 'operations', 1, id)
  redis.call('RPUSH', base .. 'operations', id)
end
return 1
