#!lua flags=allow-oom
-- Adds records of deletions to the stream of them, and removes old ones. A full Redis takes them,
-- because deletions make room.
-- ARGV  1  ms to keep a record
--       2  most records
--       3… each record (JSON)
local key, oldest = KEYS[1] .. 'deletions', redis.call('TIME')[1] * 1000 - ARGV[1]
redis.call('XTRIM', key, 'MINID', '~', oldest)
for at = 3, #ARGV do redis.call('XADD', key, 'MAXLEN', '~', ARGV[2], '*', 'record', ARGV[at]) end
