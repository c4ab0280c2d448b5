#!lua flags=allow-oom
-- Fetches waiting jobs of a lane and locks them. Runs although Redis is full: only jobs that are done free memory. A
-- job that was stalled is fetched alone: its worker runs it exclusively and would put all others back.
-- KEYS: the beginning of the lane's keys. ARGV: the queue's base, token, ms to lock for, now (ms; '' if the caller
-- can't know it), most jobs, the bytes of data after which no more jobs are fetched, the bytes that they must not
-- exceed, 1 if the first job may exceed them, the lane's lease, the worker, and the number of jobs that any worker
-- fetches. Returns what keeps jobs from being fetched (bullmq, paused, leased or ''), when the next delayed job is due
-- (ms, 0 for none), the bytes of the next job if it did not fit (else 0), a list of jobs (data, time of enqueueing,
-- starts, failed tries, stalls, progress, name and id), and if the lane is leased, after how many ms the worker must look
-- again (0 if others do).
--include ../bullmq-layout/jobs.lua#fetch

-- A lane's lease. The worker whose fetch got several jobs leases the lane: it fetches the next jobs as well, so that
-- they gather while it is busy, because a small batch costs nearly as much as a large one. Other workers leave the jobs
-- until enough of them wait, or until the lease ends. The lease ends LEASE_MS after that fetch, even if the worker
-- dies, so no job waits longer than that for a worker that is slow, paused or dead.
local LEASE_MS, LOOKERS = 50, 2
local lane, base, token, lockMs, now, most = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local enough, capacity, mayExceed = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1'
local lease, worker, plenty = ARGV[9], ARGV[10], tonumber(ARGV[11])
-- Returns after how many ms the worker must look again at the jobs that it leaves: 0 if enough others do. The first one
-- that looks wakes a second one, in case it dies: it has used up the marker, and no other job may arrive.
local function whenToLook()
  local lookers = lease .. ':lookers'
  local isNew, ms = redis.call('SADD', lookers, worker) == 1, math.max(redis.call('PTTL', lease), 1)
  local count = redis.call('SCARD', lookers)
  if count > LOOKERS then
    redis.call('SREM', lookers, worker)
    return 0
  end
  redis.call('PEXPIRE', lookers, ms)
  if isNew and count == 1 then wakeIfJobsWait(lane) end
  return ms
end
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local obstacle, due = obstacleOf(lane, tonumber(now))
if obstacle then return {obstacle, due, 0, {}} end
local holder = redis.call('GET', lease)
if holder and holder ~= worker then
  local waiting = countWaiting(lane)
  if waiting < plenty then return {'leased', due, 0, {}, waiting > 0 and whenToLook() or 0} end
end
local ids = activateWaiting(lane, most)
local jobs, misfit, bytes, at = {}, 0, 0, 1
while at <= #ids do
  local id = ids[at]
  local key = lane .. id
  local job = readJob(key)
  if job then
    local size, isFirst, wasStalled = #job[1], #jobs == 0, tonumber(job[5] or 0) > 0
    if bytes + size > capacity and not (isFirst and mayExceed) then misfit = size break end
    if wasStalled and not isFirst then break end
    job[3], job[8] = (job[3] or 0) + 1, id
    lockJob(key, token, lockMs, now, job[3])
    jobs[#jobs + 1] = job
    bytes = bytes + size
    if bytes >= enough or wasStalled then at = at + 1 break end
  else
    dropRemoved(lane, id)
  end
  at = at + 1
end
putBack(lane, #ids - at + 1)
if #jobs > 1 then
  redis.call('SET', lease, worker, 'PX', LEASE_MS)
elseif holder == worker then
  redis.call('DEL', lease)
end
if #ids == most or at <= #ids then wakeIfJobsWait(lane) end
return {'', due, misfit, jobs}
