#!lua flags=allow-oom
-- Completes jobs that succeeded, in one step, also in a full Redis: stores their results, sends
-- them to replicas that wait, and removes the jobs from the queue. A job whose lock the worker has
-- lost stays in the queue. Retained and transient results share a bound in bytes. Each kind may use
-- half of it, and more while the other kind uses less. Above the bound, the script evicts the
-- oldest transient results, and the oldest retained results of the tenant with the most bytes. It
-- evicts no result that this call has stored.
-- ARGV  1    a JSON object:
--            retainedMs   ms to keep a retained result
--            transientMs  ms to keep a transient result
--            resultBytes  bytes bound of all results
--            recentBytes  bytes bound of `recent`
--            jobs         each with id, prefix of its lane's keys, token, attempt, tenant, retained (if its result
--                         must be) and, if it has them, reply stream, claim, the operation that retried it, purged
--                         (see load.lua), and a payload to retain in place of its own
--       2 …  of each job: result, and line for `recent`
-- Returns 1 if more must be evicted: then call it again without jobs; otherwise 0. Then the ids of the jobs that stay.
--include ../load/load.lua#release
--include ../bullmq-layout/jobs.lua#remove
--include ../replies/results.lua#change
--include ../replies/results.lua#reply
--include ../failed/failed-set.lua#outcome
--include ../replies/claims.lua#finish
--include ../purge/purge.lua#words
-- The jobs that completed recently are in the stream `recent`. It has an entry for each call that
-- completed jobs: the number of jobs, and a line about each. `recent:bytes` counts its bytes,
-- because a stream can only be trimmed by its number of entries.
local RECENT_BYTES = 50 -- Redis's own cost of an entry.
local function appendRecent(base, lines, bound)
  local key, counter = base .. 'recent', base .. 'recent:bytes'
  local text = table.concat(lines, '\n')
  redis.call('XADD', key, '*', 'count', #lines, 'jobs', text)
  local bytes = redis.call('INCRBY', counter, #text + RECENT_BYTES)
  -- May remove more entries than the one that was added, so that a lowered bound is reached step by
  -- step.
  for _ = 1, 10 do
    local oldest = bytes > bound and redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
    if not oldest then return end
    redis.call('XDEL', key, oldest[1])
    bytes = redis.call('DECRBY', counter, #oldest[2][4] + RECENT_BYTES)
  end
end
local EVICTED_AT_ONCE = 500 -- A call must not block Redis for more than about a millisecond.
local ENTRY_BYTES = 8192 -- An entry with more bytes gets no further reply.
local REPLY_BYTES = 4096 -- A larger result is not sent, only the job's id: the replica looks the result up.
local base, input = KEYS[1], cjson.decode(ARGV[1])
local jobs, retainedMs, transientMs, bound = input.jobs, input.retainedMs, input.transientMs, input.resultBytes
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ids, keys = {}, {}
for at, job in ipairs(jobs) do ids[at], keys[at] = job.id, lockKey(job.lane, job.id) end
local newestKey, groupsKey, retainedKey = base .. 'newest-results', base .. 'transient', base .. 'retained'
keys[#ids + 1], keys[#ids + 2], keys[#ids + 3] = newestKey, groupsKey, retainedKey
local values, counted = redis.call('MGET', unpack(keys)), #ids > 0 and countedJobs(base, ids)

-- `transient`: the new transient results by id. The same results are also in a flat list of id and
-- result. `addedBytes`: their bytes.
local transient, addedBytes = {}, 0
-- `retained`: the ids of new retained results. `hasChanged`: storing them changed the values that
-- were read above.
local retained, hasChanged = {}, false
local streams, removed, lanes, lines, staying = {}, {}, {}, {}, {}
for at, job in ipairs(jobs) do
  local id, lane, stream, result, line = job.id, job.lane, job.stream, ARGV[2 * at], ARGV[2 * at + 1]
  local own = counted[id]
  if isStale(own, job.purged) or not own and isDeleted(base, id) then result = withoutWords(result) end
  -- Nobody asks for the payload of a job with several threads.
  local isRetained = job.retained or own and own.isRetained and own.threads == 1
  if not own and hasResult(base, lane, id) then
    -- The job was completed, or failed permanently, by the worker that has the lock now. That
    -- worker's result stays.
  elseif isRetained then
    local data = job.payload or redis.call('HGET', lane .. id, 'data')
    data = data or redis.call('HGET', base .. 'retained:' .. id, 'data') or ''
    retainResult(base, job.tenant, id, result, data, job.attempt, now, retainedMs)
    retained[id], hasChanged = true, true
  elseif not transient[id] then
    transient[id] = true
    transient[#transient + 1] = id
    transient[#transient + 1] = result
    addedBytes = addedBytes + #result + RESULT_BYTES
  end
  if values[at] == job.token then
    local ofLane = lanes[lane] or {ids = {}, locks = {}}
    ofLane.ids[#ofLane.ids + 1], ofLane.locks[#ofLane.locks + 1] = id, keys[at]
    lanes[lane], removed[id] = ofLane, own
    lines[#lines + 1] = line
    countOutcome(base, job.operation, 'stored')
    if job.claim then finishClaim(base, job.claim, id, result) end
  elseif values[at] or jobExists(lane, id) then
    -- A job that does not exist was completed by this command, which was sent again because its reply was lost, or by
    -- another worker. These can't be distinguished, so in the second case the job is counted twice.
    staying[#staying + 1] = id
  end
  if stream then
    local replies = streams[stream] or {bytes = 0}
    if replies.bytes > ENTRY_BYTES then
      append(base, stream, replies)
      replies = {bytes = 0}
    end
    local last, text = #replies, #result <= REPLY_BYTES and result or ''
    replies[last + 1], replies[last + 2] = id, text
    replies.bytes = replies.bytes + #id + #text
    streams[stream] = replies
  end
end
for stream, replies in pairs(streams) do append(base, stream, replies) end
for lane, ofLane in pairs(lanes) do removeActive(lane, ofLane.ids, ofLane.locks) end
release(base, removed)
if #lines > 0 then appendRecent(base, lines, input.recentBytes) end

if hasChanged then values = redis.call('MGET', unpack(keys)) end
local packed = values[#ids + 1]
local groupBytes, retainedBytes = tonumber(values[#ids + 2] or 0), tonumber(values[#ids + 3] or 0)
local newest, since, newestBytes = '', 0, 0 -- The newest group, which is no member of `transient` yet.
if packed then newest, since, newestBytes = cmsgpack.unpack(packed) end
local groupMs = math.floor(transientMs * (1 + 1 / GROUPS)) -- A group lives until its last result has expired.
local beginsGroup = false
if #transient > 0 then
  beginsGroup = not packed or now - since > transientMs / GROUPS or newestBytes > bound / GROUPS
  if beginsGroup then
    if packed then keep(groupsKey, newest, since, newestBytes) end
    groupBytes = groupBytes + newestBytes
    newest, since, newestBytes = string.format('%.0f', time[1] * 1000000 + time[2]), now, 0
  end
  redis.call('HSET', base .. 'results:' .. newest, unpack(transient))
  -- The hash is new, because its group is new or all results of the group were removed.
  if newestBytes == 0 then redis.call('PEXPIRE', base .. 'results:' .. newest, groupMs) end
  newestBytes = newestBytes + addedBytes
  redis.call('SET', newestKey, cmsgpack.pack(newest, since, newestBytes))
end
-- Expired members stay in their bounded stores until the next group begins.
if not beginsGroup and groupBytes + newestBytes + retainedBytes <= bound then return {0, unpack(staying)} end
local evicted = {}
local function evictor(prefix)
  return function(member) evicted[#evicted + 1] = base .. prefix .. member end
end
-- Returns how many bytes one kind of results may use, if the other kind uses `others`.
local function roomBeside(others) return math.max(bound / 2, bound - others) end
local forGroups = roomBeside(retainedBytes) - newestBytes
local moreGroups = evict(groupsKey, forGroups, now - groupMs, EVICTED_AT_ONCE, evictor('results:'))
local forRetained = roomBeside(bytesIn(groupsKey) + newestBytes)
local expired, evictRetained = now - retainedMs, evictor('retained:')
local moreRetained = evictOfTenants(retainedKey, forRetained, expired, EVICTED_AT_ONCE, evictRetained, retained)
if #evicted > 0 then redis.call('UNLINK', unpack(evicted)) end
return {math.max(moreGroups, moreRetained), unpack(staying)}
