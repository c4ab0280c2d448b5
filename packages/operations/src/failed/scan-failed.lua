-- Reads failed jobs of one lane, newest first, and returns those that may match. The caller must
-- check them exactly, because a text that is searched for may also occur elsewhere in the data. One
-- call examines a bounded number of jobs and bytes, so that Redis is never blocked for more than a
-- few milliseconds. Reads a job's data only if Sluice did not record its failure, or if texts are
-- searched for and it has several threads. (A job of one thread has the thread's name.)
-- ARGV  1-2  latest and earliest time of failure (ms)
--       3-4  the job to continue after: time of failure (ms) and id ('' for none)
--       5    most jobs to return
--       6    a part of the reason
--       7    tenant ('' for all)
--       8    the operation that retried the job last ('' for any)
--       9-10 beginning and end of the name of a job of one thread
--       11 … texts that must all occur in the data of another job
-- Returns
--       1-2  the last job that was examined: time of failure (ms) and id ('' for both if none is left)
--       3 …  for each job found: id, time of failure (ms), tenant, threads, data ('' if it was not read), name, reason, time
--            of enqueueing (ms), attempts, attempts before its last retry, failed threads (0 for all)
--include @sluice/queue/load/load.lua#release
--include @sluice/queue/bullmq-layout/jobs.lua#states
--include @sluice/queue/bullmq-layout/jobs.lua#failed
local MOST_EXAMINED, MOST_BYTES, PAGE = 250, 1048576, 200
local lane, latest, earliest, afterAt, afterId = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local most, reason, tenant, operation = tonumber(ARGV[5]), string.lower(ARGV[6]), ARGV[7], ARGV[8]
local nameBegin, nameEnd = ARGV[9], ARGV[10]
local found, examined, bytes, offset = {'', ''}, 0, 0, 0
-- Returns nothing if the job can't match. Otherwise returns its tenant and threads (an empty table
-- if its failure was not recorded), and its data ('' if it was not read).
local function match(id, name, failure, packed)
  if not string.find(string.lower(failure), reason, 1, true) then return end
  local job = packed and read(packed) or {}
  if tenant ~= '' and job.tenant and job.tenant ~= tenant then return end
  if operation ~= '' and not string.find(select(2, historyOf(lane, id)) or '', operation, 1, true) then return end
  if packed and #ARGV == 10 then return job, '' end
  if job.threads == 1 then
    local isNamed = string.sub(name, 1, #nameBegin) == nameBegin and string.sub(name, #name - #nameEnd + 1) == nameEnd
    if isNamed then return job, '' end
    return
  end
  local data = readData(lane, id)
  bytes = bytes + #data
  for i = 11, #ARGV do
    if not string.find(data, ARGV[i], 1, true) then return end
  end
  return job, data
end
while true do
  local page = failedBetween(lane, latest, earliest, offset, PAGE)
  for i = 1, #page, 2 do
    local id, at = page[i], page[i + 1]
    if not (tonumber(at) == afterAt and id >= afterId) then
      if #found - 2 == most or examined == MOST_EXAMINED or bytes > MOST_BYTES then return found end
      found[1], found[2] = at, id
      examined = examined + 1
      local summary, packed, tried, failedThreads = summaryOf(lane, id, {'load', 'triedBefore', 'failedThreads'})
      if summary then
        local job, data = match(id, summary[1] or '', summary[2] or '', packed)
        if job then
          summary[5], summary[6] = tried or 0, failedOf(failedThreads, job.threads or -1)
          found[#found + 1] = {id, at, job.tenant or '', job.threads or 0, data, unpack(summary, 1, 6)}
        end
      end
    end
  end
  if #page < 2 * PAGE then
    found[1], found[2] = '', ''
    return found
  end
  offset = offset + PAGE
end
