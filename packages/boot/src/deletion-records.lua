#!lua flags=allow-oom
-- Adds records of deletions to the stream of them, and removes old ones. A full Redis takes them,
-- because deletions make room.
-- ARGV  1  ms to keep a record
--       2… kind and record (JSON) of each
local oldest = redis.call('TIME')[1] * 1000 - ARGV[1]
redis.call('XADD', KEYS[1] .. 'deletions', 'MINID', '~', oldest, '*', unpack(ARGV, 2))
