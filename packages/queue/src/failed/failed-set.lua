-- Failed jobs, which BullMQ keeps. The bounded store `failures` bounds their bytes. A job's
-- `progress` is a JobProgress of job.ts. These fields of a job are Sluice's own:
--   tries          its failed attempts and its retries by hand, a line of JSON each, the newest first
--   failedThreads  the failed threads of its last failed attempt
--   failure        its result, once it has failed permanently
--   triedBefore    the number of its attempts before its last retry by hand
--   resultBefore   its result before that retry, until it fails permanently again: threads with a
--                  receipt in it are not stored again
--   load           see load.lua
--   suspect        the job is quarantined: see fetch.lua
--part attempt
#!lua flags=allow-oom
-- Records a failed attempt of a job whose lock the worker still has. If the attempt was final, also
-- fails the job permanently: moves the job to BullMQ's failed ones, stores its result, notifies the
-- replica that waits, counts the job in its import, and removes it from the load. All of this is
-- one step, so that a worker can't die in between. Then evicts failed jobs above the bound.
-- ARGV  1  a JSON object:
--          keptMs   ms to keep failed jobs
--          bytes    their bytes bound
--          lanes    prefixes of both lanes' keys
--          imports  bounds of imports: see write-import.lua
--          job      absent if this call only evicts: id, prefix of its lane's keys, token, most bytes of its attempts,
--                   the attempt, the failed threads, and purged if it has it (see load.lua)
--          final    in `job`, if the attempt is final: tenant, reason, stacks, progress and result, and if it has them,
--                   reply stream, import and its outcome for the import, and the operation that retried it
-- Returns 0 if the worker has lost the lock, 2 if the job is stale. Otherwise returns 1, then 1 if more must be evicted
-- (call it again without a job) or 0, the ids of the evicted jobs, and why the import or the reply
-- could not be written.
--include ../bounded.lua
--include ../load/load.lua#failed
--include ../bullmq-layout/jobs.lua#remove
--include ../bullmq-layout/jobs.lua#failed
--include ../imports/write-import.lua
--include ../replies/results.lua#reply
--include failed-set.lua#outcome
local FAILURE_BYTES = 1000 -- Redis's own cost of a failed job, and the bytes of its small fields.
local EVICTED_AT_ONCE = 100
local base, input = KEYS[1], cjson.decode(ARGV[1])
local failures, job, time = base .. 'failures', input.job, redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- The field `tries` has a line for each attempt, the newest first.
local function recordAttempt(key)
  local attempts = job.attempt .. '\n' .. (redis.call('HGET', key, 'tries') or '')
  if #attempts > job.most then attempts = string.match(string.sub(attempts, 1, job.most), '^.*\n') or '' end
  redis.call('HSET', key, 'tries', attempts, 'failedThreads', job.failedThreads)
end
local refused = {}
-- Runs a function that may throw: a broken import or reply stream must not keep a job from failing.
local function tryTo(run, ...)
  local isDone, problem = pcall(run, ...)
  if not isDone then refused[#refused + 1] = type(problem) == 'table' and problem.err or problem end
end
local function failForGood(id, lane, final)
  failActive(lane, id, final.reason, final.stacks, final.progress, now)
  redis.call('HDEL', lane .. id, 'resultBefore')
  redis.call('HSET', lane .. id, 'failure', final.result)
  -- Send no result: the replica looks it up.
  if final.stream then tryTo(append, base, final.stream, {id, ''}) end
  local import, outcome = final.import, {id, final.outcome}
  if import then tryTo(writeImport, base, final.tenant, import, 'progress', outcome, now, input.imports) end
  countOutcome(base, final.operation, 'failedAgain')
  releaseFailed(base, lane, id)
  keep(failures, id, now, FAILURE_BYTES + sizeOf(lane, id, {'failure', 'tries', 'failedThreads'}))
end
if job then
  if redis.call('GET', lockKey(job.lane, job.id)) ~= job.token then return {0} end
  if isStale(countedJobs(base, {job.id})[job.id], job.purged) then return {2} end
  recordAttempt(job.lane .. job.id)
  if job.final then failForGood(job.id, job.lane, job.final) end
end
local discarded = {}
-- The store of failures does not say in which lane a job failed, so this looks in both.
local function discard(id)
  for _, lane in ipairs(input.lanes) do
    if takeFailed(lane, id) then
      uncountFailed(base, lane, id)
      removeTaken(lane, id)
      discarded[#discarded + 1] = id
    end
  end
end
local more = evict(failures, input.bytes, now - input.keptMs, EVICTED_AT_ONCE, discard)
return {1, math.max(more, evictImports(base, input.imports, now)), discarded, refused}
--part move
#!lua flags=allow-oom
-- Retries or discards failed jobs. Jobs that are not failed stay as they are. A retried job keeps
-- its data, including its stamp (its place in the order of acceptance), and is counted in the load
-- again.
-- ARGV  1    retry or discard
--       2-3  prefixes of both lanes' keys
--       4    a retry as a line of `tries`
--       5    the most attempts that count
--       6    id of the operation
--       7 …  job ids
-- Returns the number of jobs moved.
--include ../bounded.lua
--include ../load/load.lua#failed
--include ../bullmq-layout/jobs.lua#add
--include ../bullmq-layout/jobs.lua#failed
-- Records a retry by hand. The job keeps the result of its failure as `resultBefore`. A job that
-- ever stalled remains quarantined.
local function retry(base, lane, id, now, operation)
  local stalls, progress, attempts = historyOf(lane, id)
  -- `progress` is a number until Sluice writes it.
  progress = progress and string.sub(progress, 1, 1) == '{' and cjson.decode(progress) or {}
  progress.retriedAt, progress.operation = now, operation
  local failure = redis.call('HGET', lane .. id, 'failure')
  if failure then redis.call('HSET', lane .. id, 'resultBefore', failure) end
  redis.call('HDEL', lane .. id, 'failure')
  redis.call('HSET', lane .. id, 'tries', ARGV[4] .. '\n' .. (redis.call('HGET', lane .. id, 'tries') or ''))
  redis.call('HINCRBY', lane .. id, 'triedBefore', math.min(attempts, ARGV[5]))
  if stalls > 0 then redis.call('HSET', lane .. id, 'suspect', 1) end
  countAgain(base, lane, id)
  retryTaken(lane, id, cjson.encode(progress))
end
local base, isRetry, moved, time = KEYS[1], ARGV[1] == 'retry', 0, redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 7, #ARGV do
  local id = ARGV[i]
  for at = 2, 3 do
    local lane = ARGV[at]
    if takeFailed(lane, id) then
      if isRetry then
        retry(base, lane, id, now, ARGV[6])
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
--part outcome
-- Counts the outcome of a job that an operation retried, as `stored` or `failedAgain`, unless the
-- operation has expired.
local function countOutcome(base, operation, outcome)
  local key = operation and base .. 'operation:' .. operation
  if key and redis.call('EXISTS', key) == 1 then redis.call('HINCRBY', key, outcome, 1) end
end
--part start
-- Returns when a job was accepted or last retried by hand (ms), and whether it was retried. Needs
-- jobs.lua#inspect.
local function startOf(lane, id)
  local accepted, progress = originOf(lane, id)
  local retried = progress and string.match(progress, '"retriedAt":(%d+)')
  return tonumber(retried or accepted or nil), retried and true
end
