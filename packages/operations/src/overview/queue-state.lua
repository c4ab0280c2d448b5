-- Counts the jobs and threads of a lane by state, and finds the age of the oldest job in each
-- state. Takes about 0.1 ms, at most 2 ms.
-- KEYS  1    the queue's base
-- ARGV  1    prefix of the lane's keys
--       2    prefix of the interactive lane's keys
--       3    the lane
-- Returns
--       1    who paused the lane (JSON; '' unless it is paused)
--       2-4  threads and bytes of the whole load, and by how much the clock is behind the last stamp (ms)
--       5    age of the newest failure (ms; -1 for none)
--       6 …  jobs, threads and age (ms; 0 without a job) for each state: waiting, delayed, active, failed
--include @sluice/queue/load/load.lua#release
--include @sluice/queue/bullmq-layout/jobs.lua#inspect
--include @sluice/queue/failed/failed-set.lua#start
-- At most this number of jobs is examined in each state. The oldest waiting job is usually among
-- the next MOST: a tenant's jobs wait in the order of their arrival, tenants take turns, and
-- returned jobs, of which there are usually few, come first.
local MOST = 300
local base, lane = KEYS[1], ARGV[1]
local time, counts, oldest = redis.call('TIME'), countJobs(lane), {}
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function noteStart(state, start)
  oldest[state] = math.min(oldest[state] or start, start)
end
-- Ids sort by the time of acceptance, so the smallest id belongs to the oldest job, unless that was
-- retried by hand.
local function noteOldest(state, ids)
  local first = ids[1]
  for at = 2, #ids do
    if ids[at] < first then first = ids[at] end
  end
  if not first then return end
  local start, wasRetried = startOf(lane, first)
  if start then noteStart(state, start) end
  if start and not wasRetried then return end
  table.sort(ids)
  for at = 2, #ids do
    start, wasRetried = startOf(lane, ids[at])
    if start then noteStart(state, start) end
    if start and not wasRetried then return end
  end
end
-- Estimates the threads of `count` jobs from some of them.
local function threadsOf(count, ids)
  local found, threads = 0, 0
  if #ids > 0 then
    for _, job in pairs(countedJobs(base, ids)) do found, threads = found + 1, threads + job.threads end
  end
  return math.floor(threads / math.max(found, 1) * count + 0.5)
end
local waiting, prioritized, active, delayed = listJobs(lane, MOST)
noteOldest('waiting', waiting)
noteOldest('waiting', prioritized)
noteOldest('active', active)
noteOldest('delayed', delayed)
if counts.failed > 0 then noteStart('failed', oldestFailure(lane)) end
local load = readLoad(base, {})
local inLoad = lane == ARGV[2] and load.interactive or load.threads - load.interactive
local failed = counts.failed > 0 and redis.call('HGET', base .. 'load', 'failed:' .. lane) or 0
local threads = {active = threadsOf(counts.active, active), delayed = threadsOf(counts.delayed, delayed), failed = failed}
threads.waiting = counts.waiting > 0 and math.max(inLoad - threads.active - threads.delayed, 0) or 0
local reply = {isPaused(lane) and (redis.call('HGET', base .. 'paused', ARGV[3]) or '{}') or ''}
reply[2], reply[3], reply[4] = load.threads, load.bytes, math.floor(math.max(load.stamp / 1000 - now, 0))
reply[5] = counts.failed > 0 and math.max(now - newestFailure(lane), 0) or -1
for _, state in ipairs({'waiting', 'delayed', 'active', 'failed'}) do
  reply[#reply + 1] = counts[state]
  reply[#reply + 1] = threads[state]
  reply[#reply + 1] = oldest[state] and math.max(now - oldest[state], 0) or 0
end
return reply
