-- Forgets what Sluice itself keeps of a job: the record of its failure, which bounds the bytes of failed jobs, and its transient result. The scripts that
-- change them include this file.
local function forgetFailure(base, id)
  if redis.call('ZREM', base .. 'failures', id) == 0 then return end
  redis.call('DECRBY', base .. 'failure-bytes', redis.call('HGET', base .. 'failure-sizes', id))
  redis.call('HDEL', base .. 'failure-sizes', id)
end
local RESULT_BYTES = 450 -- Redis's own cost of a result: its key, its index and its time to live.
-- A job that is retried has no result yet, and callers wait for the next one. A result that becomes retained is no longer transient.
local function forgetResult(base, id)
  local result = redis.call('GET', base .. 'result:' .. id)
  if not result then return end
  local bytes = #result + RESULT_BYTES
  redis.call('DEL', base .. 'result:' .. id)
  if redis.call('ZREM', base .. 'results:transient', id .. '/' .. bytes) == 1 then redis.call('DECRBY', base .. 'bytes:transient', bytes) end
end
