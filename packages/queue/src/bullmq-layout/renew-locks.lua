-- Renews the locks of jobs that a worker still works on, as BullMQ's own script does, which a full Redis refuses.
--
-- KEYS: the beginning of the lane's keys. ARGV: ms to lock for, then an id and a token for each job.
for i = 2, #ARGV, 2 do
  local lock = KEYS[1] .. ARGV[i] .. ':lock'
  if redis.call('GET', lock) == ARGV[i + 1] then
    redis.call('PEXPIRE', lock, ARGV[1])
    redis.call('SREM', KEYS[1] .. 'stalled', ARGV[i])
  end
end
return 1
