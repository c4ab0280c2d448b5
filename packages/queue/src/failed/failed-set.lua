-- Failed jobs, which BullMQ keeps. Sluice bounds the bytes of all of them, by the bounded store `failures`.
local function discardTaken(base, lane, id)
  removeTaken(lane, id)
  release(base, countedJobs(base, {id}))
end
--part record
#!lua flags=allow-oom
-- Records a job that failed for good, removes it from the load, and discards the oldest failed jobs beyond the bound.
-- ARGV: ms to keep failed jobs, their bytes bound, the job's id ('' to record none), the beginning of its lane's keys,
-- then that of both lanes' keys. Returns 1 if more must be discarded (then call it again without a job) or else 0, and
-- the ids of the discarded jobs.
--include ../bounded.lua
--include ../load/load.lua#release
--include ../bullmq-layout/jobs.lua#states
--include ../load/load.lua#failed
--include ../bullmq-layout/jobs.lua#failed
--include failed-set.lua
local FAILURE_BYTES = 1000 -- Redis's own cost of a failed job, and its small fields.
local EVICTED_AT_ONCE = 100
local base, keptMs, bound, id = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local failures, time = base .. 'failures', redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if id ~= '' and releaseFailed(base, ARGV[4], id) then
  keep(failures, id, now, FAILURE_BYTES + sizeOf(ARGV[4], id))
end
local discarded = {}
local more = evict(failures, bound, now - keptMs, EVICTED_AT_ONCE, function(oldest)
  for lane = 4, #ARGV do
    -- A job that was retried meanwhile stays.
    if takeFailed(ARGV[lane], oldest) then
      discardTaken(base, ARGV[lane], oldest)
      discarded[#discarded + 1] = oldest
    end
  end
end)
return {more, discarded}
--part unrecorded
-- Finds failed jobs that count as load although they failed some time ago: their worker died before it recorded them.
-- ARGV: the beginning of a lane's keys, cursor, number of jobs to look at, the time (ms). Returns the next cursor and
-- the jobs' ids.
--include ../load/load.lua#release
--include ../bullmq-layout/jobs.lua#states
local cursor, failed = scanFailed(ARGV[1], ARGV[2], ARGV[3])
local time, ids, found = redis.call('TIME'), {}, {}
local latest = time[1] * 1000 - tonumber(ARGV[4])
for at = 1, #failed, 2 do
  if tonumber(failed[at + 1]) < latest then ids[#ids + 1] = failed[at] end
end
if #ids > 0 then
  for id in pairs(countedJobs(KEYS[1], ids)) do found[#found + 1] = id end
end
return {cursor, found}
--part move
#!lua flags=allow-oom
-- Retries or discards failed jobs. Other jobs stay as they are, so the script may run again. A retried job keeps its
-- data, and with it its position in the order of acceptance, and counts as load as soon as it waits.
-- ARGV: retry or discard, the beginning of both lanes' keys, then job ids. Returns the number of jobs moved.
--include ../bounded.lua
--include ../load/load.lua#release
--include ../load/load.lua#again
--include ../bullmq-layout/jobs.lua#add
--include ../bullmq-layout/jobs.lua#failed
--include failed-set.lua
--include ../replies/results.lua
--include ../replies/results.lua#change
local base, moved = KEYS[1], 0
for i = 4, #ARGV do
  for at = 2, 3 do
    local lane, id = ARGV[at], ARGV[i]
    if takeFailed(lane, id) then
      if ARGV[1] == 'discard' then
        discardTaken(base, lane, id)
        forget(base .. 'failures', id)
      else
        countAgain(base, lane, id)
        retryTaken(lane, id)
        forgetResult(base, id)
      end
      moved = moved + 1
    end
  end
end
return moved
