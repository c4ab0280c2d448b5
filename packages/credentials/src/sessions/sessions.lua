#!lua flags=allow-oom
-- Stores a session or a login link. Runs in a full Redis, too, because people log in to see why it
-- is full.
-- KEYS  1  the queue's base
-- ARGV  1  the rest of the key's name
--       2  the session, or the visitor of the link, as JSON
--       3  ms to keep it
return redis.call('SET', KEYS[1] .. ARGV[1], ARGV[2], 'PX', ARGV[3])
