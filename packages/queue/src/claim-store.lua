#!lua flags=allow-oom
-- Makes a queue feed a store, unless it feeds one. Runs although Redis is full: only workers make
-- room.
-- ARGV  1  the store (JSON)
redis.call('SET', KEYS[1] .. 'store', ARGV[1], 'NX')
return 1
