#!lua flags=allow-oom
-- Makes a queue feed a store, unless it feeds one already. Runs in a full Redis, too: a worker
-- calls it before it takes its first job, and only workers free memory.
-- ARGV  1  the store (JSON)
redis.call('SET', KEYS[1] .. 'store', ARGV[1], 'NX')
return 1
