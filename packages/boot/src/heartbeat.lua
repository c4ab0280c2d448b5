#!lua flags=allow-oom
-- Records a heartbeat of a process, and adds its counts to the hash of this minute, which is kept
-- for 25 hours. Runs in a full Redis, too, because people then look at the overview. A process is
-- removed GONE_MS after its last heartbeat, or immediately if it stops in an orderly way.
-- ARGV  1  a JSON object:
--          id      of the process
--          beat    the number of this heartbeat: if it arrives again, it changes nothing
--          about   the description of the process, a text that begins with this number; absent if the process stops
--          counts  what to add, by name
--          peaks   values by name: the largest one of a minute is kept
--          durations  how many to add to each bin, by what was timed; absent if the process times
--                     nothing
--          reached whether this process has reached MongoDB
--          unavailable  if MongoDB is unavailable for this process: for how long (ms), and the reason
local KEPT_MS, GONE_MS, MOST_PROCESSES = 25 * 3600 * 1000, 600000, 500
-- If MongoDB becomes unavailable within SOON_MS after a worker could use it, this belongs to the
-- same outage, because some writes may succeed during an outage.
local SOON_MS = 10000
local MOST_TENANTS = 40 -- A minute with refusals of this number of tenants gets no further tenant.
local base, input, time = KEYS[1], cjson.decode(ARGV[1]), redis.call('TIME')
local id, processes, descriptions = input.id, base .. 'processes', base .. 'processes:about'
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = string.match(redis.call('HGET', descriptions, id) or '', '^{"beat":(%d+)')
if tonumber(known or 0) >= input.beat then return now end
-- A heartbeat covers the time since the previous heartbeat of its process arrived. `covered` is the
-- end of the time that any process has covered. This heartbeat adds only the time after it.
local last = tonumber(redis.call('ZSCORE', processes, id) or now)
local covered = tonumber(redis.call('GET', base .. 'covered') or 0)
-- The clock of this server may be behind the previous server's clock.
if covered > now then covered = 0 end
local added = math.max(now - math.max(last, covered), 0)
if added > 0 then redis.call('SET', base .. 'covered', now, 'PX', KEPT_MS) end
if input.about then
  redis.call('ZADD', processes, now, id)
  redis.call('HSET', descriptions, id, input.about)
end
local gone = redis.call('ZRANGEBYSCORE', processes, '-inf', now - GONE_MS, 'LIMIT', 0, 100)
if #gone == 0 and redis.call('ZCARD', processes) > MOST_PROCESSES then gone = redis.call('ZRANGE', processes, 0, 0) end
if not input.about then gone[#gone + 1] = id end
if #gone > 0 then
  redis.call('ZREM', processes, unpack(gone))
  redis.call('HDEL', descriptions, unpack(gone))
end
local minute = base .. 'minute:' .. math.floor(now / 60000)
local function hasRoom(name)
  if not string.find(name, 'refused:', 1, true) or redis.call('HEXISTS', minute, name) == 1 then return true end
  return redis.call('HINCRBY', minute, 'tenants', 1) <= MOST_TENANTS
end
for name, count in pairs(input.counts) do
  if hasRoom(name) then redis.call('HINCRBY', minute, name, count) end
end
for name, peak in pairs(input.peaks) do
  -- As a text, because Redis would write a number with 17 digits.
  if peak > tonumber(redis.call('HGET', minute, name) or 0) then redis.call('HSET', minute, name, tostring(peak)) end
end
redis.call('HINCRBY', minute, 'covered', added)
redis.call('PEXPIRE', minute, KEPT_MS)
-- All bins are in one text, because a field for each bin took twice the time and memory.
if input.durations and next(input.durations) then
  local key = minute .. ':durations'
  local sums = cjson.decode(redis.call('GET', key) or '{}')
  for timed, counts in pairs(input.durations) do
    local sum = sums[timed] or {}
    for bin, count in ipairs(counts) do sum[bin] = (sum[bin] or 0) + count end
    sums[timed] = sum
  end
  redis.call('SET', key, cjson.encode(sums), 'PX', KEPT_MS)
end
-- `store-unavailable` has the time when any worker first lost MongoDB, and the newest reason. It
-- outlives the worker.
local store = base .. 'store-unavailable'
if input.unavailable then
  local lost, first = now - input.unavailable.ms, tonumber(redis.call('HGET', store, 'since'))
  if not first or lost < first then redis.call('HSET', store, 'since', lost) end
  redis.call('HSET', store, 'reason', input.unavailable.reason)
  redis.call('PEXPIRE', store, GONE_MS)
elseif input.reached and redis.call('PTTL', store) > SOON_MS then
  redis.call('PEXPIRE', store, SOON_MS)
end
return now
