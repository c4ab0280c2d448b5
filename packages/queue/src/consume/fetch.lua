#!lua flags=allow-oom
-- Fetches waiting jobs of a lane and locks them. Runs in a full Redis, too, because only jobs that
-- complete free memory. A quarantined job is fetched alone, because its worker runs it alone and
-- would return all others.
--
-- KEYS  1   prefix of the lane's keys
-- ARGV  1   a JSON object:
--           token     the value of the jobs' locks
--           lockMs    ms to lock a job for
--           capacity  jobs: at most this number; bytes: of their data, at most; isEmpty: the first may exceed the bytes
--           enough    bytes of data after which no further job is fetched
--           lease     key of the lane's lease
--           name      the lane's name; pauses: key of the pauses (see operations.lua)
--           worker    id of the worker that fetches
--           suppressions  key of the value that is new after each change of the list of suppressions
--           plenty    if at least this number of jobs waits, any worker fetches
--           now       ms since 1970, absent if Redis may run the script later. Workers set when delayed jobs are due, and
--                     Redis's clock or this worker's may be behind theirs, so the later one counts
-- Returns
--       1   when the next delayed job is due (ms; 0 for none)
--       2   bytes of the next job if it did not fit, otherwise 0
--       3   for each job: data, time of enqueueing, starts, attempts, 1 if it is quarantined, progress, name, id
--       4   if jobs are left to the worker with the lease: ms after which this worker must look again (0 for never)
--       5   Redis's time (ms)
--       6   the value of `suppressions`, if jobs were fetched
--include ../bullmq-layout/jobs.lua#fetch

-- A lane's lease lets jobs gather, because a small batch costs nearly as much as a large one. The
-- worker whose fetch got several jobs leases the lane. Other workers leave the jobs until enough of
-- them wait, or until the lease ends, LEASE_MS after that fetch, even if the worker dies. So no job
-- waits longer for a slow, paused or dead worker.
local LEASE_MS = 50
local lane, input = KEYS[1], cjson.decode(ARGV[1])
local lease, worker, capacity, most = input.lease, input.worker, input.capacity, input.capacity.jobs
-- Returns after how many ms this worker must look again at the jobs that it leaves, or 0 if another
-- worker will look. If Redis's clock was moved back, the lease lasts longer than it was set for.
local function whenToLook()
  local ms = math.max(math.min(redis.call('PTTL', lease), LEASE_MS), 1)
  return redis.call('SET', lease .. ':looker', worker, 'NX', 'PX', ms) and ms or 0
end
-- Returns the attempts of a job since it was last retried by hand, and whether it is quarantined.
-- BullMQ counts failed attempts in `atm`. It counts a crash as a stall of every job that the worker
-- had locked, although at most one of them caused the crash. So we add only a job's first stall to
-- `atm`. From then on, the job is quarantined (its field `suspect` is set): it runs alone, and each
-- attempt is counted in `atm` before it begins (see end-jobs.ts).
local function attemptsOf(key, job)
  local attempts, stalls = tonumber(job[4] or 0), tonumber(job[5] or 0)
  if stalls == 0 then return attempts, false end
  if redis.call('HSETNX', key, 'suspect', 1) == 1 then
    attempts = attempts + 1
    setAttempts(key, attempts)
  end
  return attempts, true
end
local time = redis.call('TIME')
local serverNow = time[1] * 1000 + math.floor(time[2] / 1000)
local now = math.max(input.now or 0, serverNow)
-- Ends the lane's pause if its time is over, so that no process needs to watch it.
local function endPause()
  local ends = string.match(redis.call('HGET', input.pauses, input.name) or '', '"untilMs":(%d+)')
  if not ends or tonumber(ends) > serverNow then return false end
  redis.call('HDEL', input.pauses, input.name)
  resumeLane(lane)
  return true
end
local mayFetch = not isPaused(lane) or endPause()
local due = letWait(lane, now, mayFetch and most or 0)
if not mayFetch then return {due, 0, {}, 0, serverNow} end
local holder, suppressions = unpack(redis.call('MGET', lease, input.suppressions))
if holder and holder ~= worker then
  local waiting = countWaiting(lane)
  if waiting < input.plenty then return {due, 0, {}, waiting > 0 and whenToLook() or 0, serverNow} end
end
local ids = activateWaiting(lane, most)
local jobs, misfit, bytes, at = {}, 0, 0, 1
while at <= #ids do
  local id = ids[at]
  local key = lane .. id
  local job = readActivated(key)
  if job then
    local size, isFirst, wasStalled = #job[1], #jobs == 0, tonumber(job[5] or 0) > 0
    if bytes + size > capacity.bytes and not (isFirst and capacity.isEmpty) then misfit = size break end
    if wasStalled and not isFirst then break end
    job[3], job[8] = (job[3] or 0) + 1, id
    job[4], job[5] = attemptsOf(key, job)
    lockJob(key, input.token, input.lockMs, now, job[3])
    jobs[#jobs + 1] = job
    bytes = bytes + size
    if bytes >= input.enough or wasStalled then at = at + 1 break end
  else
    dropRemoved(lane, id)
  end
  at = at + 1
end
returnActivated(lane, #ids - at + 1)
if #jobs > 1 then
  redis.call('SET', lease, worker, 'PX', LEASE_MS)
elseif holder == worker then
  redis.call('DEL', lease)
end
if #ids == most or at <= #ids then wakeIfJobsWait(lane) end
return {due, misfit, jobs, 0, serverNow, suppressions}
