#!lua flags=allow-oom
-- Records a heartbeat of a process, and adds its counts to the hash of this minute, which is kept for 25 hours. Runs
-- although Redis is full, because people then look at the overview. A process is removed GONE_MS after its last
-- heartbeat, or at once if it stops in order.
-- ARGV  1    the process's id
--       2    its description ('' if the process stops)
--       3    number of counts
--       4 …  name of each count and what to add, then name and value of each peak: the largest of the minute stays
local KEPT_MS, GONE_MS, MOST_PROCESSES = 25 * 3600 * 1000, 600000, 500
local MOST_FIELDS = 60 -- A minute with this number of fields gets no further tenant. A minute has 3 to 10 KB.
local base, id, description, counts = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local processes, descriptions, time = base .. 'processes', base .. 'processes:about', redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if description == '' then
  redis.call('ZREM', processes, id)
  redis.call('HDEL', descriptions, id)
else
  redis.call('ZADD', processes, now, id)
  redis.call('HSET', descriptions, id, description)
end
local gone = redis.call('ZRANGEBYSCORE', processes, '-inf', now - GONE_MS, 'LIMIT', 0, 100)
if #gone == 0 and redis.call('ZCARD', processes) > MOST_PROCESSES then gone = redis.call('ZRANGE', processes, 0, 0) end
if #gone > 0 then
  redis.call('ZREM', processes, unpack(gone))
  redis.call('HDEL', descriptions, unpack(gone))
end
local minute = base .. 'minute:' .. math.floor(now / 60000)
local fields = redis.call('HLEN', minute)
-- Returns the field's value before, or nothing if the minute has no room for a new field.
local function valueOf(name)
  local value = redis.call('HGET', minute, name)
  if value then return tonumber(value) end
  if fields >= MOST_FIELDS and string.find(name, 'refused:', 1, true) then return nil end
  fields = fields + 1
  return 0
end
for at = 4, #ARGV, 2 do
  local name, value = ARGV[at], tonumber(ARGV[at + 1])
  local before = valueOf(name)
  local isCount = at < 4 + 2 * counts
  if before and (isCount or value > before) then redis.call('HSET', minute, name, isCount and before + value or value) end
end
redis.call('PEXPIRE', minute, KEPT_MS)
return 1
