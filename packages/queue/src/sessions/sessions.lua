#!lua flags=allow-oom
-- Stores a session or a login link, also in a full Redis: people log in to see why it is full. ARGV: the rest of its
-- name, its value, ms to keep it.
return redis.call('SET', KEYS[1] .. ARGV[1], ARGV[2], 'PX', ARGV[3])
