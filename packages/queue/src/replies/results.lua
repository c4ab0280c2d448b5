-- Results of jobs that succeeded, transient and retained. (A job that failed permanently has its
-- result in its field `failure`.)
-- Transient results are stored in groups, because a key for each result would need three more
-- commands. A group is a hash `results:GROUP` (job id, result), which expires as a whole. New
-- results are added to the newest group until it has a sixteenth of the time or of the bytes that
-- all groups may have. Then it becomes a member of the bounded store `transient`, and a new group
-- begins. `newest-results` has the newest group's name, when it began (ms) and its bytes, packed.
-- A retained result is a hash `retained:ID` and a member of `retained`, a bounded store of tenants.
-- It has the tenant, the job's data (which may be large), its result, when it completed (ms), and
-- at which attempt.
local RESULT_BYTES = 450 -- Redis's own cost of a result.
local GROUPS = 16
--part reply
-- Bounds a stream to 16 MB, as an entry has at most 12 KB. A replica looks up the results that it
-- misses.
local ENTRIES_KEPT = 1300
local REPLIES_KEPT_MS = 600000 -- The stream of a replica that is gone expires after this time without new entries.
-- Adds an entry to a replica's stream: a flat list of job id and result.
local function append(base, stream, replies)
  local key = base .. 'replies:' .. stream
  redis.call('XADD', key, 'MAXLEN', '~', ENTRIES_KEPT, '*', unpack(replies))
  redis.call('PEXPIRE', key, REPLIES_KEPT_MS)
end
--part change
--include ../bounded.lua
--include ../bullmq-layout/jobs.lua#states
--include results.lua
local function failureOf(lane, id)
  return redis.call('HGET', lane .. id, 'failure')
end
local function newestGroup(base)
  local packed = redis.call('GET', base .. 'newest-results')
  if packed then return cmsgpack.unpack(packed) end
end
-- Returns the groups, newest first.
local function groupsOf(base)
  local groups = redis.call('ZREVRANGE', base .. 'transient:age', 0, -1)
  local newest = newestGroup(base)
  if newest then table.insert(groups, 1, newest) end
  return groups
end
local function findTransient(base, id)
  for _, group in ipairs(groupsOf(base)) do
    local result = redis.call('HGET', base .. 'results:' .. group, id)
    if result then return result, group end
  end
end
local function hasResult(base, lane, id)
  return findTransient(base, id) or redis.call('EXISTS', base .. 'retained:' .. id) == 1 or failureOf(lane, id)
end
-- Returns whether the thread of a job was deleted lately, by the last digits of the job's id: see
-- purge.lua. An API or a frozen worker may still send words of a job that Redis no longer knows.
local DELETED_SECONDS = 600
local function isDeleted(base, id)
  return redis.call('ZSCORE', base .. 'deleted', string.sub(id, -8)) and true
end
local function forgetResult(base, id)
  local result, group = findTransient(base, id)
  if not result then return end
  redis.call('HDEL', base .. 'results:' .. group, id)
  local newest, since, bytes = newestGroup(base)
  local freed = #result + RESULT_BYTES
  if group ~= newest then return addBytes(base .. 'transient', group, -freed) end
  redis.call('SET', base .. 'newest-results', cmsgpack.pack(group, since, bytes - freed))
end
local function retainResult(base, tenant, id, result, data, attempts, now, keptMs)
  local key = base .. 'retained:' .. id
  local at = string.format('%.0f', now)
  redis.call('HSET', key, 'result', result, 'data', data, 'at', at, 'attempts', attempts, 'tenant', tenant)
  redis.call('PEXPIRE', key, keptMs)
  keepOf(base .. 'retained', tenant, id, now, #result + #data + RESULT_BYTES)
end
--part find
-- Returns the result of each job: '' if it has none yet, nil if Redis does not know the job.
-- ARGV  1-2  prefixes of both lanes' keys
--       3 …  job ids
--include results.lua#change
local base, found, ids = KEYS[1], {}, {unpack(ARGV, 3)}
local missing = #ids
for at = 1, #ids do found[at] = '' end
for _, group in ipairs(groupsOf(base)) do
  if missing == 0 then break end
  for at, result in ipairs(redis.call('HMGET', base .. 'results:' .. group, unpack(ids))) do
    if result and found[at] == '' then found[at], missing = result, missing - 1 end
  end
end
for at, id in ipairs(ids) do
  if found[at] == '' then
    local result = redis.call('HGET', base .. 'retained:' .. id, 'result')
    result = result or failureOf(ARGV[1], id) or failureOf(ARGV[2], id)
    found[at] = result or (jobExists(ARGV[1], id) or jobExists(ARGV[2], id)) and ''
  end
end
return found
--part look
-- Returns the small facts about a job, so that a poll, or a look-up by another tenant, need not
-- read the job's data: its tenant, the bytes of its data and result if they are retained (otherwise
-- 0), and then
--   of a job that is retained: when it completed (ms), attempts
--   of a job in the queue: place of its lane in ARGV, and the list that `timesOf` returns
-- Returns nothing if Redis does not know the job, or if the job has several threads: only operators
-- use the ids of such jobs.
-- ARGV  1    job id
--       2-3  prefixes of both lanes' keys
--include ../load/load.lua#release
--include ../bullmq-layout/jobs.lua#inspect
local base, id = KEYS[1], ARGV[1]
local retained = base .. 'retained:' .. id
local at, attempts, tenant = unpack(redis.call('HMGET', retained, 'at', 'attempts', 'tenant'))
if at then
  return {tenant, redis.call('HSTRLEN', retained, 'data') + redis.call('HSTRLEN', retained, 'result'), at, attempts}
end
for lane = 2, 3 do
  local job = timesOf(ARGV[lane], id, 'load')
  local packed = job and (redis.call('HGET', base .. 'load:jobs', id) or job[6])
  local counted = packed and read(packed)
  if counted and counted.threads == 1 then return {counted.tenant, 0, lane, job} end
end
--part retain
#!lua flags=allow-oom
-- Returns the job's result. If the job has no result yet, returns '' and marks the job, so that its
-- result will be retained. If the job has a transient result, and the caller sends the job's data
-- (which Redis no longer has), the result becomes a retained one.
-- ARGV  1    job id
--       2    the job's data or ''
--       3    ms to keep the result
--       4-5  prefixes of both lanes' keys
--       6    tenant
--include results.lua#change
--include ../load/load.lua#failed
local base, id, data, keptMs = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local result = findTransient(base, id)
if result then
  -- The data may have words of a suppressed speaker (`s`).
  if data ~= '' and not isDeleted(base, id) and not string.find(result, '"outcomes":"[^"]*s') then
    local time = redis.call('TIME')
    forgetResult(base, id)
    retainResult(base, ARGV[6], id, result, data, 1, time[1] * 1000 + math.floor(time[2] / 1000), keptMs)
  end
  return result
end
result = redis.call('HGET', base .. 'retained:' .. id, 'result')
result = result or failureOf(ARGV[4], id) or failureOf(ARGV[5], id)
if result then return result end
local job = countedJobs(base, {id})[id]
if job then redis.call('HSET', base .. 'load:jobs', id, packRetained(job)) end
return ''
