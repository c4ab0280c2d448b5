#!lua flags=allow-oom
-- Notes a sign of life of a process, and adds its counts to the hash of this minute, which is kept for 25 hours. Runs
-- although Redis is full: people look at the overview when it is. Processes are gone GONE_MS after their last sign, or
-- at once if they stop in order.
-- ARGV: the process's id, its description (empty if it stops), the number of counts, then for each count its name and what to add, and for
-- each peak its name and value, of which the largest of the minute stays.
local KEPT_MS, GONE_MS, MOST_PROCESSES = 25 * 3600 * 1000, 600000, 500
local MOST_FIELDS = 60 -- Beyond it, a minute gets no further tenant. It has some 3 KB, and 10 KB at most.
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
-- Returns the value before, or nothing if the name does not fit.
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
