#!lua flags=allow-oom
-- Fetches waiting jobs of a lane and locks them. Runs although Redis is full, because only jobs that are done free memory.
--
-- A job that was stalled is fetched alone, because its worker runs it exclusively and would have to put all others back.
--
-- KEYS: the beginning of the lane's keys. ARGV: the queue's base, token, ms to lock for, now (ms; '' if the caller can't know it), most jobs, the bytes of data
-- after which no more jobs are fetched, the bytes that they must not exceed, 1 if the first job may exceed them, the lane's lease, the worker, and the number of
-- jobs that any worker fetches. Returns what keeps jobs from being fetched (special, paused, leased or ''), when the next delayed job is due (ms, 0 for none), the
-- bytes of the next job if it did not fit (else 0), a list of jobs (data, time of enqueueing, starts, failed tries, stalls, progress and id), and if the lane is
-- leased, after how many ms the worker must look again (0 if another one does).
--include ../load/load.lua
--include ../bullmq-layout/states.lua
--include ../load/load.lua#failed
--include ../bullmq-layout/fetch-jobs.lua
--include lease.lua
local lane, base, token, lockMs, now, most = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local enough, room, mayExceed = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1'
local lease, worker, plenty = ARGV[9], ARGV[10], tonumber(ARGV[11])
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local obstacle, due = obstacleOf(lane, tonumber(now))
if obstacle then return {obstacle, due, 0, {}} end
if isLeasedToAnother(lease, worker) then
  local waiting = countWaiting(lane)
  if waiting < plenty then return {'leased', due, 0, {}, waiting > 0 and whenToLook(lease, worker) or 0} end
end
local ids = takeWaiting(lane, most)
local jobs, active, misfit, bytes, at = {}, {}, 0, 0, 1
while at <= #ids do
  local id = ids[at]
  local key = jobKey(lane, id)
  local job = readJob(key)
  if job then
    local size, isFirst, wasStalled = #job[1], #jobs == 0, tonumber(job[5] or 0) > 0
    if bytes + size > room and not (isFirst and mayExceed) then misfit = size break end
    if wasStalled and not isFirst then break end
    if job[7] then countAgain(base, id, key, job[7]) end
    job[3], job[7] = (job[3] or 0) + 1, id
    lockJob(key, token, lockMs, now, job[3])
    jobs[#jobs + 1], active[#active + 1] = job, id
    bytes = bytes + size
    if bytes >= enough or wasStalled then at = at + 1 break end
  end
  at = at + 1
end
activate(lane, active, ids, at)
leaseAfterFetch(lease, worker, #jobs)
if #ids == most or at <= #ids then wakeIfJobsWait(lane) end
return {'', due, misfit, jobs}
