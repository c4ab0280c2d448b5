-- Returns the job's result, or marks the job so that its result will be retained. KEYS: the queue's base. ARGV: job id, ms to keep the mark.
local result = redis.call('GET', KEYS[1] .. 'result:' .. ARGV[1]) or redis.call('HGET', KEYS[1] .. 'retained:' .. ARGV[1], 'result')
if result then return result end
redis.call('SET', KEYS[1] .. 'retain:' .. ARGV[1], 1, 'PX', ARGV[2])
return ''
