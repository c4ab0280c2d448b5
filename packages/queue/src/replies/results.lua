-- Results of jobs, transient and retained. The scripts that change transient results include this file.
local RESULT_BYTES = 450 -- Redis's own cost of a result: its key, its index and its time to live.
-- A job that is retried has no result yet, and callers wait for the next one. A result that becomes retained is no longer transient.
local function forgetResult(base, id)
  local result = redis.call('GET', base .. 'result:' .. id)
  if not result then return end
  local bytes = #result + RESULT_BYTES
  redis.call('DEL', base .. 'result:' .. id)
  if redis.call('ZREM', base .. 'results:transient', id .. '/' .. bytes) == 1 then redis.call('DECRBY', base .. 'bytes:transient', bytes) end
end
--part find
-- Returns the result of each job, or '' if it has none yet. KEYS: the queue's base. ARGV: job ids.
local found = {}
for i, id in ipairs(ARGV) do
  found[i] = redis.call('GET', KEYS[1] .. 'result:' .. id) or redis.call('HGET', KEYS[1] .. 'retained:' .. id, 'result') or ''
end
return found
--part retain
#!lua flags=allow-oom
-- Returns the job's result, or marks the job so that its result will be retained. The mark is a field of BullMQ's job, so it is gone with the job. A job
-- that does not exist gets none. The transient result of a job that has completed becomes a retained one if the caller gives back the job's data, which is
-- gone with the job. A failed job keeps its data itself.
--
-- KEYS: the queue's base. ARGV: job id, the job's data or '', ms to keep it, BullMQ's keys that the job may have.
--include results.lua
local base, id, data, keptMs = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local function retain(result)
  local time, key = redis.call('TIME'), base .. 'retained:' .. id
  local now, bytes = time[1] * 1000 + math.floor(time[2] / 1000), #result + RESULT_BYTES + #data
  forgetResult(base, id)
  redis.call('HSET', key, 'result', result, 'data', data, 'at', string.format('%.0f', now), 'attempts', 1)
  redis.call('PEXPIRE', key, keptMs)
  redis.call('ZADD', base .. 'results:retained', now, id .. '/' .. bytes)
  redis.call('INCRBY', base .. 'bytes:retained', bytes)
end
local result = redis.call('GET', base .. 'result:' .. id)
if result then
  if data ~= '' and not cjson.decode(result).failure then retain(result) end
  return result
end
result = redis.call('HGET', base .. 'retained:' .. id, 'result')
if result then return result end
for i = 4, #ARGV do
  if redis.call('EXISTS', ARGV[i]) == 1 then redis.call('HSET', ARGV[i], 'sluice:retained', 1) end
end
return ''
