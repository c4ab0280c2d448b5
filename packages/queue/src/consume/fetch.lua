#!lua flags=allow-oom
-- Moves waiting jobs to the active ones and locks each, as BullMQ's own script does with one job, without its events. Sets the marker, which wakes other
-- workers, if more jobs wait. Runs although Redis is full, because only jobs that are done free memory.
--
-- BullMQ must fetch (special = 1) if a delayed job is due, if jobs have priorities, or if the queue's meta hash has a field that this script does
-- not know: `concurrency`, `max` and `duration` are limits on all workers, and a newer BullMQ may have other ones.
--
-- A job that was stalled is fetched alone, because its worker runs it exclusively and would have to put all others back.
--
-- KEYS: the beginning of the lane's keys. ARGV: token, ms to lock for, now (ms; '' if the caller can't know it), most jobs, the bytes of data after which
-- no more jobs are fetched, the bytes that they must not exceed, 1 if the first job may exceed them, the lane's lease, the worker, and how many jobs are
-- enough to be fetched although another worker has the lease. Returns special, when the next delayed job is due (ms, 0 for none), the bytes of the next
-- job if it did not fit (else 0), after how many ms the worker must look again (0: it need not), and a list of fields for each job. The part `renew` keeps jobs locked.
--include ../load/load.lua
--include lease.lua
local HARMLESS = { version = true, ['opts.maxLenEvents'] = true }
local FIRST = 5 -- The place of the first job in what this script returns.
local lane, now = KEYS[1], tonumber(ARGV[3])
local enough, room, mayExceed = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1'
local lease, worker = ARGV[8], ARGV[9]
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local delayed = redis.call('ZRANGE', lane .. 'delayed', 0, 0, 'WITHSCORES')
local due = delayed[2] and math.floor(delayed[2] / 0x1000) or 0
local special = (due > 0 and due <= now) or redis.call('EXISTS', lane .. 'prioritized') == 1
local paused = false
for _, field in ipairs(redis.call('HKEYS', lane .. 'meta')) do
  if field == 'paused' then paused = true elseif not HARMLESS[field] then special = true end
end
if special then return {1, due, 0, 0} end
local fetched = {0, due, 0, 0}
if paused then return fetched end
if isLeasedToAnother(lease, worker) then
  local waiting = redis.call('LLEN', lane .. 'wait')
  if waiting < tonumber(ARGV[10]) then return {0, due, 0, waiting > 0 and whenToLook(lease, worker) or 0} end
end
local bytes = 0
for _ = 1, tonumber(ARGV[4]) do
  local id = redis.call('RPOPLPUSH', lane .. 'wait', lane .. 'active')
  if not id then break end
  local key = lane .. id
  local job = redis.call('HMGET', key, 'data', 'timestamp', 'ats', 'atm', 'stc', 'progress', 'load')
  local part = table.remove(job)
  if job[1] then
    local size, isFirst, wasStalled = #job[1], #fetched < FIRST, tonumber(job[5] or 0) > 0
    local fits = bytes + size <= room or (isFirst and mayExceed)
    if not fits or (wasStalled and not isFirst) then
      redis.call('LPOP', lane .. 'active')
      redis.call('RPUSH', lane .. 'wait', id)
      if not fits then fetched[3] = size end
      break
    end
    if part then countAgain(string.match(lane, '^%b{}:') .. 'sluice:', id, key, part) end
    job[3] = (job[3] or 0) + 1
    redis.call('SET', key .. ':lock', ARGV[1], 'PX', ARGV[2])
    redis.call('HSET', key, 'processedOn', string.format('%.0f', now), 'ats', job[3])
    table.insert(job, 1, id)
    fetched[#fetched + 1] = job
    bytes = bytes + size
    if bytes >= enough or wasStalled then break end
  else
    redis.call('LREM', lane .. 'active', 1, id)
  end
end
leaseAfterFetch(lease, worker, #fetched - FIRST + 1)
if redis.call('EXISTS', lane .. 'wait') == 1 then redis.call('ZADD', lane .. 'marker', 0, '0') end
return fetched
--part renew
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
