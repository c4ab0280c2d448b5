-- Failed jobs, which BullMQ keeps. Sluice bounds the bytes of all of them, by the bounded store `failures`.
--part record
#!lua flags=allow-oom
-- Records a job that failed for good, and takes it off the load.
--
-- KEYS: the queue's base. ARGV: the beginning of the lane's keys, ms to keep failed jobs, their bytes bound, and the
-- job's id ('' to record none). Returns the ids of the oldest failed jobs that exceed the bound, and forgets them. If
-- the script returns any, call it again.
--include ../bounded.lua
--include ../load/load.lua
--include ../load/load.lua#release
--include ../bullmq-layout/states.lua
--include ../load/load.lua#failed
--include ../bullmq-layout/failed-jobs.lua
local FAILURE_BYTES = 1000 -- Redis's own cost of a failed job, and its small fields.
local EVICTED_AT_ONCE = 100
local base, lane, keptMs, bound, id = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local failures, time = base .. 'failures', redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if id ~= '' then
  releaseFailed(base, lane, id)
  keep(failures, id, now, FAILURE_BYTES + sizeOf(jobKey(lane, id)))
end
local excess = {}
evict(failures, bound, now - keptMs, EVICTED_AT_ONCE, function(evicted) excess[#excess + 1] = evicted end)
return excess
--part move
#!lua flags=allow-oom
-- Retries or discards failed jobs, in one step. Other jobs stay as they are, so the script may run again.
--
-- A retried job keeps its data, and with it its position in the order of acceptance. It counts as load again once it is
-- fetched. A discarded job leaves nothing, except a result that expires soon.
--
-- KEYS: the queue's base. ARGV: retry or discard, the number of lanes, the beginning of each lane's keys, then job ids.
-- Returns the number of jobs moved.
--include ../bounded.lua
--include ../load/load.lua
--include ../load/load.lua#release
--include ../bullmq-layout/failed-jobs.lua
--include ../replies/results.lua
--include ../replies/results.lua#change
local base, action, lanes, moved = KEYS[1], ARGV[1], tonumber(ARGV[2]), 0
for i = 3 + lanes, #ARGV do
  local id = ARGV[i]
  for at = 3, 2 + lanes do
    local lane = ARGV[at]
    if takeFailed(lane, id) then
      if action == 'discard' then
        removeFailed(lane, id)
        release(base, countedJobs(base, {id}))
        forget(base .. 'failures', id)
      else
        retryJob(lane, id)
        forgetResult(base, id)
      end
      moved = moved + 1
    end
  end
end
return moved
