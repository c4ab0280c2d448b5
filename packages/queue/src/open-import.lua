-- Stores the size of an import once all of it is in the queue. Its jobs may be done by then. KEYS: the beginning of the import's keys. ARGV: ms to
-- keep an unfinished import, ms to keep a finished one, then fields and values.
local base = KEYS[1]
redis.call('HSET', base .. 'about', unpack(ARGV, 3))
local done = redis.call('HLEN', base .. 'progress') >= tonumber(redis.call('HGET', base .. 'about', 'jobs'))
local ms = done and ARGV[2] or ARGV[1]
redis.call('PEXPIRE', base .. 'about', ms)
redis.call('PEXPIRE', base .. 'progress', ms)
return 1
