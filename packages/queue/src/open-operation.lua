#!lua flags=allow-oom
-- Adds an operation to the open ones. KEYS: the queue's base. ARGV: most open operations, ms to keep an operation that is never finished, id, then fields
-- and values. Returns 0 if too many are open.
local key = KEYS[1] .. 'operation:' .. ARGV[3]
if redis.call('LLEN', KEYS[1] .. 'operations') >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', key, unpack(ARGV, 4))
redis.call('PEXPIRE', key, ARGV[2])
redis.call('RPUSH', KEYS[1] .. 'operations', ARGV[3])
return 1
