-- Failed jobs, which BullMQ keeps. The bounded store `failures` bounds their bytes.
--part try
#!lua flags=allow-oom
-- Records a failed try of a job whose lock the worker still has. The field `tries` has a line for each, the newest
-- first.
-- ARGV  1  job id
--       2  token
--       3  the most bytes of the tries
--       4  the try
--       5  the failed threads
--       6  the job's progress ('' to leave it)
--include ../bullmq-layout/jobs.lua#remove
local job, most = KEYS[1] .. ARGV[1], tonumber(ARGV[3])
if redis.call('GET', lockKey(KEYS[1], ARGV[1])) ~= ARGV[2] then return 0 end
local tries = ARGV[4] .. '\n' .. (redis.call('HGET', job, 'tries') or '')
if #tries > most then tries = string.match(string.sub(tries, 1, most), '^.*\n') or '' end
redis.call('HSET', job, 'tries', tries, 'failedThreads', ARGV[5])
if ARGV[6] ~= '' then redis.call('HSET', job, 'progress', ARGV[6]) end
return 1
--part record
#!lua flags=allow-oom
-- Records that a job failed for good, in one step: stores its result, replies it, counts it in its import, and removes
-- the job from the load. If BullMQ does not list the job as failed since that very time, the job was retried or
-- discarded meanwhile, and stays as it is. Then discards the oldest failed jobs beyond their bound.
-- ARGV  1    ms to keep failed jobs
--       2    their bytes bound
--       3-4  beginning of both lanes' keys
--       5-7  bounds of imports: see write-import.lua
--       unless it only discards:
--       8    id of the job
--       9    beginning of its lane's keys
--       10   when it failed (ms)
--       11   its result
--       12   reply stream ('' for none)
--       13   tenant
--       14   import ('' for none)
--       15   outcome for the import
-- Returns 1 if more must be discarded (then call it again without a job) or else 0, and the ids of the discarded jobs.
--include ../bounded.lua
--include ../load/load.lua#release
--include ../load/load.lua#failed
--include ../bullmq-layout/jobs.lua#failed
--include ../imports/write-import.lua
--include ../replies/results.lua#reply
local FAILURE_BYTES = 1000 -- Redis's own cost of a failed job, and the bytes of its small fields.
local EVICTED_AT_ONCE = 100
local base, keptMs, bound, lanes = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), {ARGV[3], ARGV[4]}
local failures, time = base .. 'failures', redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id, lane, failedAt, result, stream, tenant, import, outcome = unpack(ARGV, 8)
if id and isFailedSince(lane, id, failedAt) then
  redis.call('HSET', lane .. id, 'failure', result)
  -- Sends no result: the replica looks it up.
  if stream ~= '' then append(base, stream, {id, ''}) end
  if import ~= '' then writeImport(base, tenant, import, 'progress', {id, outcome}, now, ARGV[6], ARGV[7]) end
  releaseFailed(base, lane, id)
  keep(failures, id, now, FAILURE_BYTES + sizeOf(lane, id))
end
local discarded = {}
local more = evict(failures, bound, now - keptMs, EVICTED_AT_ONCE, function(oldest)
  for _, lane in ipairs(lanes) do
    if takeFailed(lane, oldest) then
      uncountFailed(base, lane, oldest)
      removeTaken(lane, oldest)
      discarded[#discarded + 1] = oldest
    end
  end
end)
return {math.max(more, evictImports(base, tonumber(ARGV[5]), now)), discarded}
--part unrecorded
-- Finds failed jobs that still count as load: their worker died before it recorded the failure.
-- ARGV  1  beginning of a lane's keys
--       2  cursor
--       3  number of jobs to examine
--       4  least age of a failure (ms)
-- Returns the next cursor and the jobs' ids.
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
-- Retries or discards failed jobs. Jobs that are not failed stay as they are, so the script may run again. A retried
-- job keeps its data, and with it its place in the order of acceptance, and counts as load again. A job whose failure
-- was not recorded still counts as load. It can be retried, but is not discarded before its import and its callers
-- know.
-- ARGV  1    retry or discard
--       2-3  beginning of both lanes' keys
--       4 …  job ids
-- Returns the number of jobs moved.
--include ../bounded.lua
--include ../load/load.lua#release
--include ../load/load.lua#failed
--include ../bullmq-layout/jobs.lua#add
--include ../bullmq-layout/jobs.lua#failed
local base, isRetry, moved, time = KEYS[1], ARGV[1] == 'retry', 0, redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 4, #ARGV do
  local id = ARGV[i]
  for at = 2, 3 do
    local lane = ARGV[at]
    if (isRetry or not countedJobs(base, {id})[id]) and takeFailed(lane, id) then
      if isRetry then
        countAgain(base, lane, id)
        retryTaken(lane, id, now)
      else
        uncountFailed(base, lane, id)
        removeTaken(lane, id)
      end
      forget(base .. 'failures', id)
      moved = moved + 1
    end
  end
end
return moved
