-- Removes a failed job from Sluice's own record of failed jobs, which bounds their bytes.
local function forgetFailure(base, id)
  if redis.call('ZREM', base .. 'failures', id) == 0 then return end
  redis.call('DECRBY', base .. 'failure-bytes', redis.call('HGET', base .. 'failure-sizes', id))
  redis.call('HDEL', base .. 'failure-sizes', id)
end
local RESULT_BYTES = 450 -- Redis's own cost of a result: its key, its index and its time to live.
-- Removes the result of a failure. A job that is retried has none yet, and callers wait for the next one.
local function forgetResult(base, id)
  local result = redis.call('GET', base .. 'result:' .. id)
  if not result then return end
  local bytes = #result + RESULT_BYTES
  redis.call('DEL', base .. 'result:' .. id)
  if redis.call('ZREM', base .. 'results:transient', id .. '/' .. bytes) == 1 then redis.call('DECRBY', base .. 'bytes:transient', bytes) end
end
