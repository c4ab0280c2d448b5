-- Records the outcomes of one job of an import. KEYS: the beginning of the import's keys. ARGV: job id, progress, ms to keep an unfinished import, ms to
-- keep a finished one.
local base = KEYS[1]
redis.call('HSET', base .. 'progress', ARGV[1], ARGV[2])
local jobs = redis.call('HGET', base .. 'about', 'jobs')
local done = jobs and redis.call('HLEN', base .. 'progress') >= tonumber(jobs)
redis.call('PEXPIRE', base .. 'progress', done and ARGV[4] or ARGV[3])
if done then redis.call('PEXPIRE', base .. 'about', ARGV[4]) end
return 1
