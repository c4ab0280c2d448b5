-- Results of jobs that succeeded, transient and retained. The part `change` needs `bounded.lua` and BullMQ's
-- `states`. The result of a job that failed for good stands in the job, which BullMQ keeps.
--
-- Transient results stand together in groups, each a hash `results:GROUP` that expires as a whole: a key for each
-- result would need three more commands, now and at its end. New results join the newest group, which `newest-results`
-- describes (packed: its name, when it began in ms, and its bytes), until it has its part of the time or of the bytes.
-- Then it becomes a member of the bounded store `transient`, and a new one begins. Retained results have a hash
-- `retained:ID` each; they are the members of `retained`, a bounded store of tenants.
local RESULT_BYTES = 450 -- Redis's own cost of a result.
local GROUPS = 16 -- The time and the bytes of all transient results are divided by this number.
--part reply
-- A replica that is far behind looks results up, so its stream may be cut: 1,300 entries of at most 12 KB are 16 MB.
local ENTRIES_KEPT = 1300
local REPLIES_KEPT_MS = 600000 -- A stream without new entries for this time belongs to a replica that is gone.
-- Replies to a replica: ids of jobs and their results in turn.
local function append(base, stream, replies)
  local key = base .. 'replies:' .. stream
  redis.call('XADD', key, 'MAXLEN', '~', ENTRIES_KEPT, '*', unpack(replies))
  redis.call('PEXPIRE', key, REPLIES_KEPT_MS)
end
--part change
local function newestGroup(base)
  local packed = redis.call('GET', base .. 'newest-results')
  if packed then return cmsgpack.unpack(packed) end
end
-- Returns the groups of transient results, the newest first.
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
-- A result that becomes retained is no longer transient.
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
  redis.call('HSET', key, 'result', result, 'data', data, 'at', string.format('%.0f', now), 'attempts', attempts)
  redis.call('PEXPIRE', key, keptMs)
  keepOf(base .. 'retained', tenant, id, now, #result + #data + RESULT_BYTES)
end
--part find
-- Returns the result of each job: '' if it has none yet, nil if Redis does not know the job. ARGV: the beginning of both lanes' keys, then job ids.
--include results.lua
--include ../bullmq-layout/jobs.lua#states
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
--part retain
#!lua flags=allow-oom
-- Returns the job's result, or '' and has the result retained that the job will have. The transient result of a job
-- that has completed becomes a retained one if the caller sends the job's data again, which is gone with the job.
-- ARGV: job id, the job's data or '', ms to keep it, the beginning of both lanes' keys, and the job's tenant.
--include ../bounded.lua
--include results.lua
--include ../bullmq-layout/jobs.lua#states
--include results.lua#change
--include ../load/load.lua#release
--include ../load/load.lua#failed
local base, id, data, keptMs = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local result = findTransient(base, id)
if result then
  if data ~= '' then
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
