#!lua flags=allow-oom
-- Completes jobs that succeeded, in one step: stores their results, sends them to the replicas that wait, and removes
-- the jobs from the queue. A job whose lock the worker has lost stays in the queue. Runs although Redis is full,
-- because it frees memory.
--
-- Retained results (with the request, copied from BullMQ's job) and transient ones share a bound in bytes. Each kind
-- may have half of it, and more while the other needs less. Beyond it, the oldest transient results are evicted, and
-- the oldest retained results of the tenant with the most bytes, but none that this call has stored. The stream
-- `recent` gets an entry for each call, with a line about each job, for look-ups.
--
-- ARGV  1    ms to keep a retained result
--       2    ms to keep a transient result
--       3    bytes bound of all results
--       4    bytes bound of `recent`
--       5 …  for each job: id, beginning of its lane's keys, token, 1 if its result must be retained, attempts,
--            reply stream ('' for none), result, line for `recent`, tenant
-- Returns 1 if more must be evicted: then call it again without jobs; else 0.
--include ../load/load.lua#release
--include ../bullmq-layout/jobs.lua#states
--include ../bullmq-layout/jobs.lua#remove
--include ../bounded.lua
--include ../replies/results.lua
--include ../replies/results.lua#change
--include ../replies/results.lua#reply
--include recent.lua
local EVICTED_AT_ONCE = 500 -- A call must not block Redis for more than about a millisecond.
local ENTRY_BYTES = 8192 -- An entry with more bytes gets no further reply.
local REPLY_BYTES = 4096 -- An entry has no larger result, only the job's id: the replica looks the result up.
local JOBS, FIELDS = 5, 9 -- The index of the first job in ARGV, and the number of its fields.
local base, retainedMs, transientMs, bound = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ids, keys = {}, {}
for at = JOBS, #ARGV, FIELDS do
  ids[#ids + 1], keys[#keys + 1] = ARGV[at], lockKey(ARGV[at + 1], ARGV[at])
end
local newestKey, groupsKey, retainedKey = base .. 'newest-results', base .. 'transient', base .. 'retained'
keys[#ids + 1], keys[#ids + 2], keys[#ids + 3] = newestKey, groupsKey, retainedKey
local values, counted = redis.call('MGET', unpack(keys)), #ids > 0 and countedJobs(base, ids)

local streams, removed, lanes, transient, retained, bytes, hasChanged = {}, {}, {}, {}, {}, 0, false
local lines = {}
for at, id in ipairs(ids) do
  local from = JOBS + (at - 1) * FIELDS
  local _, lane, token, retain, attempts, stream, result, line, tenant = unpack(ARGV, from, from + FIELDS - 1)
  local own = counted[id]
  local isRetained = retain == '1' or own and own.isRetained
  -- An earlier worker that lost its lock may have stored a transient result. This result replaces it.
  if own and attempts ~= '1' then
    forgetResult(base, id)
    hasChanged = true
  end
  if not own and hasResult(base, lane, id) then
    -- The job has completed or failed for good. This worker has lost the lock, and the owner's result stays.
  elseif isRetained then
    local data = redis.call('HGET', lane .. id, 'data') or redis.call('HGET', base .. 'retained:' .. id, 'data') or ''
    retainResult(base, tenant, id, result, data, attempts, now, retainedMs)
    retained[id], hasChanged = true, true
  elseif not transient[id] then
    transient[id] = true
    transient[#transient + 1] = id
    transient[#transient + 1] = result
    bytes = bytes + #result + RESULT_BYTES
  end
  if values[at] == token then
    local ofLane = lanes[lane] or {ids = {}, locks = {}}
    ofLane.ids[#ofLane.ids + 1], ofLane.locks[#ofLane.locks + 1] = id, keys[at]
    lanes[lane], removed[id] = ofLane, own
    lines[#lines + 1] = line
  end
  if stream ~= '' then
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
if #lines > 0 then appendRecent(base, lines, tonumber(ARGV[4])) end

if hasChanged then values = redis.call('MGET', unpack(keys)) end
local packed, ofGroups, ofRetained = unpack(values, #ids + 1, #ids + 3)
local group, since, inGroup, isNew = '', 0, 0, false
local groupMs = math.floor(transientMs * (1 + 1 / GROUPS)) -- A group lives until its last result has expired.
if packed then group, since, inGroup = cmsgpack.unpack(packed) end
if #transient > 0 then
  isNew = not packed or now - since > transientMs / GROUPS or inGroup > bound / GROUPS
  if isNew then
    if packed then keep(groupsKey, group, since, inGroup) end
    ofGroups = (ofGroups or 0) + inGroup
    group, since, inGroup = string.format('%.0f', time[1] * 1000000 + time[2]), now, 0
  end
  redis.call('HSET', base .. 'results:' .. group, unpack(transient))
  -- The hash is new: its group is new, or all results of the group were forgotten.
  if inGroup == 0 then redis.call('PEXPIRE', base .. 'results:' .. group, groupMs) end
  inGroup = inGroup + bytes
  redis.call('SET', newestKey, cmsgpack.pack(group, since, inGroup))
end
ofGroups, ofRetained = tonumber(ofGroups or 0), tonumber(ofRetained or 0)
-- Expired members stay in the index until the next group begins.
if not isNew and ofGroups + inGroup + ofRetained <= bound then return 0 end
local evicted = {}
local function evictor(prefix)
  return function(member) evicted[#evicted + 1] = base .. prefix .. member end
end
local room = math.max(bound / 2, bound - ofRetained) - inGroup
local moreGroups = evict(groupsKey, room, now - groupMs, EVICTED_AT_ONCE, evictor('results:'))
room = math.max(bound / 2, bound - bytesIn(groupsKey) - inGroup)
local expired, evictRetained = now - retainedMs, evictor('retained:')
local moreRetained = evictOfTenants(retainedKey, room, expired, EVICTED_AT_ONCE, evictRetained, retained)
if #evicted > 0 then redis.call('UNLINK', unpack(evicted)) end
return math.max(moreGroups, moreRetained)
