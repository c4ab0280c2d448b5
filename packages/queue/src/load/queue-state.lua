-- Counts the jobs and threads of a lane by state, and finds the age of the oldest job of each, in at most about a
-- millisecond. KEYS: the queue's base. ARGV: the beginning of the lane's keys, and of the interactive lane's. Returns
-- whether the lane is paused, then jobs, threads and age (ms, 0 without a job) for each: waiting, delayed, active,
-- failed.
--include load.lua#release
--include ../bullmq-layout/jobs.lua#inspect
-- Of the delayed and the active jobs, the first MOST are looked at. Workers have fewer active ones, unless they are many.
local MOST = 500
local base, lane = KEYS[1], ARGV[1]
local time, counts, oldest = redis.call('TIME'), countJobs(lane), {}
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function noteStart(state, start)
  oldest[state] = math.min(oldest[state] or start, start)
end
local function goesFirst(id)
  local packed = redis.call('HGET', base .. 'load:jobs', id)
  return packed and read(packed).first > 0
end
-- Waiting jobs stand in the order of their arrival, except before the first one that was never fetched and does not go
-- first: before it are jobs that were put back, which are at most as many as workers fetch, and those that go first.
local waiting = listWaiting(lane, MOST)
for at = #waiting, 1, -1 do
  local start, wasFetched = startOf(lane, waiting[at])
  if start then noteStart('waiting', start) end
  if start and not wasFetched and not goesFirst(waiting[at]) then break end
end
-- Returns the threads of `count` jobs, by those of some of them.
local function threadsOf(count, ids)
  local found, threads = 0, 0
  if #ids > 0 then
    for _, job in pairs(countedJobs(base, ids)) do found, threads = found + 1, threads + job.threads end
  end
  return math.floor(threads / math.max(found, 1) * count + 0.5)
end
local prioritized, active, delayed = listOthers(lane, MOST)
for state, ids in pairs({waiting = prioritized, active = active, delayed = delayed}) do
  for _, id in ipairs(ids) do
    local start = startOf(lane, id)
    if start then noteStart(state, start) end
  end
end
if counts.failed > 0 then noteStart('failed', oldestFailure(lane)) end
local load = readLoad(base, {})
local inLoad = lane == ARGV[2] and load.i or load.threads - load.i
local failed = counts.failed > 0 and redis.call('HGET', base .. 'load', 'failed:' .. lane) or 0
local threads = {active = threadsOf(counts.active, active), delayed = threadsOf(counts.delayed, delayed), failed = failed}
threads.waiting = counts.waiting > 0 and math.max(inLoad - threads.active - threads.delayed, 0) or 0
local reply = {isPaused(lane) and 1 or 0}
for _, state in ipairs({'waiting', 'delayed', 'active', 'failed'}) do
  reply[#reply + 1] = counts[state]
  reply[#reply + 1] = threads[state]
  reply[#reply + 1] = oldest[state] and math.max(now - oldest[state], 0) or 0
end
return reply
