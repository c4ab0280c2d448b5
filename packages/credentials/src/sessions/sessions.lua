#!lua flags=allow-oom
-- Stores a session or a login link, also in a full Redis: people log in to see why it is full.
-- ARGV  1  the rest of its name
--       2  its value
--       3  ms to keep it
return redis.call('SET', KEYS[1] .. ARGV[1], ARGV[2], 'PX', ARGV[3])
