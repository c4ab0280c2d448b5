-- Failed jobs, which BullMQ keeps. The bounded store `failures` bounds their bytes. Fields of a job that only Sluice has:
-- `tries`, `failedThreads` and `failure` (its result) of a job that failed, `triedBefore` of a job that was retried by
-- hand (its tries before that), `load` (see load.lua) and `suspect` (see
-- fetch.lua). Its `progress` is a JobProgress of job.ts.
--part try
#!lua flags=allow-oom
-- Records a failed try of a job whose lock the worker still has. The field `tries` has a line for each, the newest
-- first.
-- ARGV  1  a JSON object: id and token of the job, the most bytes of the tries, the try, the failed threads; of a final
--          try also the job's progress and its result, which counts once the job has failed
--include ../bullmq-layout/jobs.lua#remove
--include ../bullmq-layout/jobs.lua#set
local input = cjson.decode(ARGV[1])
local job, most = KEYS[1] .. input.id, input.most
if redis.call('GET', lockKey(KEYS[1], input.id)) ~= input.token then return 0 end
local tries = input.try .. '\n' .. (redis.call('HGET', job, 'tries') or '')
if #tries > most then tries = string.match(string.sub(tries, 1, most), '^.*\n') or '' end
redis.call('HSET', job, 'tries', tries, 'failedThreads', input.failedThreads)
if input.progress then
  setProgress(job, input.progress)
  redis.call('HSET', job, 'failure', input.result)
end
return 1
--part record
#!lua flags=allow-oom
-- Records that a job failed for good, in one step: stores its result, notifies the replica that waits, counts the job
-- in its import, and removes it from the load. If BullMQ does not list the job as failed since `failedAt`, the job was
-- retried or discarded meanwhile, and nothing is recorded. Then evicts the oldest failed jobs beyond their bound, and
-- imports beyond theirs.
-- ARGV  1  a JSON object:
--          keptMs   ms to keep failed jobs
--          bytes    their bytes bound
--          lanes    beginning of both lanes' keys
--          imports  bounds of imports: see write-import.lua
--          job      absent if this call only evicts: id, beginning of its lane's keys, failedAt (ms), result, tenant,
--                   and if it has them, reply stream, import and its outcome for the import
-- Returns 1 if more must be evicted (then call it again without a job) or else 0, and the ids of the evicted jobs.
--include ../bounded.lua
--include ../load/load.lua#release
--include ../load/load.lua#failed
--include ../bullmq-layout/jobs.lua#failed
--include ../imports/write-import.lua
--include ../replies/results.lua#reply
local FAILURE_BYTES = 1000 -- Redis's own cost of a failed job, and the bytes of its small fields.
local EVICTED_AT_ONCE = 100
local base, input = KEYS[1], cjson.decode(ARGV[1])
local failures, job, time = base .. 'failures', input.job, redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if job and isFailedSince(job.lane, job.id, job.failedAt) then
  local id, lane = job.id, job.lane
  redis.call('HSET', lane .. id, 'failure', job.result)
  -- Sends no result: the replica looks it up.
  if job.stream then append(base, job.stream, {id, ''}) end
  if job.import then writeImport(base, job.tenant, job.import, 'progress', {id, job.outcome}, now, input.imports) end
  releaseFailed(base, lane, id)
  keep(failures, id, now, FAILURE_BYTES + sizeOf(lane, id, {'failure', 'tries', 'failedThreads'}))
end
local discarded = {}
local more = evict(failures, input.bytes, now - input.keptMs, EVICTED_AT_ONCE, function(oldest)
  for _, lane in ipairs(input.lanes) do
    if takeFailed(lane, oldest) then
      uncountFailed(base, lane, oldest)
      removeTaken(lane, oldest)
      discarded[#discarded + 1] = oldest
    end
  end
end)
return {math.max(more, evictImports(base, input.imports, now)), discarded}
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
--       4    a retry as a line of `tries`
--       5    the most tries that count
--       6 …  job ids
-- Returns the number of jobs moved.
--include ../bounded.lua
--include ../load/load.lua#release
--include ../load/load.lua#failed
--include ../bullmq-layout/jobs.lua#add
--include ../bullmq-layout/jobs.lua#failed
--include ../bullmq-layout/jobs.lua#set
-- Records a retry by hand, and deletes the job's failure. A job that ever stalled remains a suspect.
local function beginAnew(lane, id, now)
  local stalls, progress, tried = historyOf(lane, id)
  progress = progress and string.sub(progress, 1, 1) == '{' and cjson.decode(progress) or {}
  progress.retriedAt = now
  progress.crashes, progress.earlier = nil, nil -- See fetch.lua.
  setProgress(lane .. id, cjson.encode(progress))
  redis.call('HDEL', lane .. id, 'failure')
  redis.call('HSET', lane .. id, 'tries', ARGV[4] .. '\n' .. (redis.call('HGET', lane .. id, 'tries') or ''))
  redis.call('HINCRBY', lane .. id, 'triedBefore', math.min(tried, ARGV[5]))
  if stalls > 0 then redis.call('HSET', lane .. id, 'suspect', 1) end
end
local base, isRetry, moved, time = KEYS[1], ARGV[1] == 'retry', 0, redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 6, #ARGV do
  local id = ARGV[i]
  for at = 2, 3 do
    local lane = ARGV[at]
    if (isRetry or not countedJobs(base, {id})[id]) and takeFailed(lane, id) then
      if isRetry then
        countAgain(base, lane, id)
        beginAnew(lane, id, now)
        retryTaken(lane, id)
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
--part start
-- Returns when a job was accepted or, if it was retried by hand, last retried (ms), and whether it was retried. Needs the
-- part `inspect` of jobs.lua.
local function startOf(lane, id)
  local accepted, progress = originOf(lane, id)
  local retried = progress and string.match(progress, '"retriedAt":(%d+)')
  return tonumber(retried or accepted or nil), retried and true
end
