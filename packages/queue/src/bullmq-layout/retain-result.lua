#!lua flags=allow-oom
-- Returns the job's result, or marks the job so that its result will be retained. The mark is a field of BullMQ's job, so it is gone with the job. A job
-- that does not exist gets none.
--
-- KEYS: the queue's base. ARGV: job id, BullMQ's keys that the job may have.
local result = redis.call('GET', KEYS[1] .. 'result:' .. ARGV[1]) or redis.call('HGET', KEYS[1] .. 'retained:' .. ARGV[1], 'result')
if result then return result end
for i = 2, #ARGV do
  if redis.call('EXISTS', ARGV[i]) == 1 then redis.call('HSET', ARGV[i], 'sluice:retained', 1) end
end
return ''
