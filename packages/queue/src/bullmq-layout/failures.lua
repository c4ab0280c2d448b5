-- Removes a failed job from Sluice's own record of failed jobs, which bounds their bytes.
local function forgetFailure(base, id)
  if redis.call('ZREM', base .. 'failures', id) == 0 then return end
  redis.call('DECRBY', base .. 'failure-bytes', redis.call('HGET', base .. 'failure-sizes', id))
  redis.call('HDEL', base .. 'failure-sizes', id)
end
