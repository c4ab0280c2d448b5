-- Removes the words of deleted threads from Redis: see purge.ts. Names of threads (service and
-- externalId), outcomes and counts stay.
--part words
local REMOVED = 'Removed, because a thread of this job was deleted.'
-- Returns a result without the fields that differ from its request, and without its reason.
local function withoutWords(text)
  local result = cjson.decode(text)
  for _, receipt in ipairs(result.receipts) do
    if type(receipt) == 'table' then receipt.sourceDiffers, receipt.quotesDiffer = nil, nil end
  end
  if result.failure then result.failure = REMOVED end
  return cjson.encode(result)
end
--part begin
#!lua flags=allow-oom
-- Refuses late results of these threads from now on (see `isDeleted`), and removes BullMQ's events,
-- whose reasons may quote a text.
-- ARGV  1-2  prefixes of both lanes' keys
--       3 …  name digits of the threads
-- Returns the keys of transient results, and the keys of reply streams.
--include ../replies/results.lua#change
local base, now = KEYS[1], tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', base .. 'deleted', '-inf', now - DELETED_SECONDS)
for at = 3, #ARGV do redis.call('ZADD', base .. 'deleted', now, ARGV[at]) end
for lane = 1, 2 do redis.call('XTRIM', ARGV[lane] .. 'events', 'MAXLEN', 0) end
-- A replica lists itself every ten minutes. Its stream lasts for ten more.
redis.call('ZREMRANGEBYSCORE', base .. 'replicas', '-inf', (now - 3600) * 1000)
local groups, streams = groupsOf(base), redis.call('ZRANGE', base .. 'replicas', 0, -1)
for at, group in ipairs(groups) do groups[at] = base .. 'results:' .. group end
for at, replica in ipairs(streams) do streams[at] = base .. 'replies:' .. replica end
return {groups, streams}
--part scan
#!lua flags=allow-oom
-- Examines the next jobs and results, in a slice that blocks Redis for about a millisecond. Removes
-- words from results that have no payload, and finds the jobs and retained results whose payload may
-- have a thread: the caller rewrites these.
-- ARGV  1  a JSON object:
--          lanes    prefixes of both lanes' keys
--          tenants  of the threads, as keys
--          digits   their name digits, as keys
--          names    SERVICE/EXTERNAL-ID as in JSON, as keys; absent to find all jobs of the tenants
--          steps    each with kind and key
--          at       the step to continue with, from 1
--          cursor   where to continue in it, '0' at its beginning
-- Returns the next step and its cursor, and for each payload that was found: its key and the names
-- in it.
--include purge.lua#words
-- A slice ends at this number of entries and kilobytes.
local ENOUGH = 1000
-- Examines few jobs at once, because a job of an import has about 60 KB.
local JOBS_AT_ONCE, RESULTS_AT_ONCE = 20, 200
local input, found, examined = cjson.decode(ARGV[1]), {}, 0
local function isNamed(id)
  return input.digits[string.sub(id, -8)]
end
local SOURCE, EXTERNAL_ID = '{"source":{"service":"', '","externalId":"'
-- Returns the names of the threads in a payload, and whether one of them is searched for. Within a
-- text of JSON, quotation marks are escaped, so no text looks like the beginning of a thread.
-- Returns no names if another program damaged the payload: it may have any thread.
local function namesIn(data)
  local names, isFound, _, at = {}, not input.names, string.find(data, SOURCE, 1, true)
  while at do
    local last, first = string.find(data, EXTERNAL_ID, at, true)
    local ends = first and string.find(data, '["\\]', first + 1)
    while ends and string.byte(data, ends) == 92 do ends = string.find(data, '["\\]', ends + 2) end
    if not ends then return {}, true end
    local name = string.sub(data, at + 1, last - 1) .. '/' .. string.sub(data, first + 1, ends - 1)
    names[#names + 1], isFound = name, isFound or input.names[name]
    _, at = string.find(data, SOURCE, ends, true)
  end
  return names, isFound or #names == 0
end
local function examine(key, data)
  examined = examined + #data / 1000
  local names, isFound = namesIn(data)
  if isFound then found[#found + 1] = {key, names} end
end
-- Calls `each` for the next pairs of a hash or a sorted set. Returns the next cursor. Redis returns
-- all pairs of a small one at once: then the cursor may be a name, behind which the next slice begins.
local function walk(command, key, cursor, count, each)
  local isName = #cursor == 36
  local next, entries = unpack(redis.call(command, key, isName and '0' or cursor, 'COUNT', count))
  local names, valueOf = {}, {}
  for at = 1, #entries, 2 do
    names[#names + 1], valueOf[entries[at]] = entries[at], entries[at + 1]
  end
  table.sort(names)
  for _, name in ipairs(names) do
    if not isName or name > cursor then
      each(name, valueOf[name])
      examined = examined + 1
      if #names > 2 * count and examined >= ENOUGH then return name end
    end
  end
  return next
end
-- Calls `each` for the next members of a bounded store, the newest first: evictions of the oldest
-- ones move no other.
local function walkStore(store, cursor, each)
  local last = cursor + RESULTS_AT_ONCE - 1
  local members = redis.call('ZREVRANGE', store .. ':age', cursor, last)
  examined = examined + #members
  for _, member in ipairs(members) do each(member) end
  return #members < RESULTS_AT_ONCE and '0' or tostring(last + 1)
end
-- Examines a job. Skips it if what it adds to the load shows another tenant, or if it has one thread
-- and its id ends with the digits of another one.
local function examineJob(id, packed, lanes)
  local isAlone = packed and string.byte(packed) == 1 -- Its number of threads, as MessagePack.
  if isAlone and input.names and not isNamed(id) then return end
  if packed and not input.tenants[select(4, cmsgpack.unpack(packed))] then return end
  for _, lane in ipairs(lanes) do
    local data = redis.call('HGET', lane .. id, 'data')
    if data then examine(lane .. id, data) end
  end
end
local function isChanged(text)
  return text and string.find(text, 'Differ', 1, true)
end
local kinds = {}
function kinds.load(key, cursor)
  return walk('HSCAN', key, cursor, JOBS_AT_ONCE, function(id, packed) examineJob(id, packed, input.lanes) end)
end
function kinds.failed(lane, cursor)
  return walk('ZSCAN', lane .. 'failed', cursor, JOBS_AT_ONCE, function(id)
    examineJob(id, redis.call('HGET', lane .. id, 'load'), {lane})
  end)
end
function kinds.transient(key, cursor)
  return walk('HSCAN', key, cursor, RESULTS_AT_ONCE, function(id, result)
    if isNamed(id) and isChanged(result) then redis.call('HSET', key, id, withoutWords(result)) end
  end)
end
function kinds.replies(key, cursor)
  local entries = redis.call('XRANGE', key, '(' .. cursor, '+', 'COUNT', JOBS_AT_ONCE)
  for _, entry in ipairs(entries) do
    local replies, isFound = entry[2], false
    examined = examined + #replies
    for at = 1, #replies, 2 do isFound = isFound or isNamed(replies[at]) and isChanged(replies[at + 1]) end
    -- The entry's other replies are lost, too. Their callers look the results up instead.
    if isFound then redis.call('XDEL', key, entry[1]) end
    cursor = entry[1]
  end
  return #entries < JOBS_AT_ONCE and '0' or cursor
end
function kinds.retained(store, cursor)
  return walkStore(store, cursor, function(id)
    if isNamed(id) then found[#found + 1] = {KEYS[1] .. 'retained:' .. id, {}} end
  end)
end
function kinds.claims(store, cursor)
  return walkStore(store, cursor, function(name)
    local key = KEYS[1] .. 'claim:' .. name
    local job, result = unpack(redis.call('HMGET', key, 'job', 'result'))
    if job and isNamed(job) and isChanged(result) then redis.call('HSET', key, 'result', withoutWords(result)) end
  end)
end
local at, cursor = input.at, input.cursor
while at <= #input.steps and examined < ENOUGH do
  local step = input.steps[at]
  cursor = kinds[step.kind](step.key, cursor)
  if cursor == '0' then at = at + 1 end
end
return {at, cursor, found}
--part rewrite
#!lua flags=allow-oom
-- Replaces the payload of a job or of a retained result, unless it has changed since it was read.
-- Removes the reasons of a job's failed attempts, too, and marks the job and its claim: what a worker
-- that fetched the job before writes about it may have words (see `isStale`).
-- ARGV  1  the key
--       2  SHA-1 of the payload that was read
--       3  the new payload
--       4  the new result of a retained result; '' for a job
--       5  id of the job
--       6  the deletion's stamp
--       7  the job's claim or ''
-- Returns 0 if the payload has changed.
--include ../load/load.lua#release
--include ../bullmq-layout/jobs.lua#failed
--include purge.lua#words
local base, key, result, id, stamp, claim = KEYS[1], ARGV[1], ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local data = redis.call('HGET', key, 'data')
if not data then return 1 end
if redis.sha1hex(data) ~= ARGV[2] then return 0 end
redis.call('HSET', key, 'data', ARGV[3])
if result ~= '' then
  redis.call('HSET', key, 'result', result)
  return 1
end
local counted = countedJobs(base, {id})[id]
if counted then
  counted.purged = stamp
  redis.call('HSET', base .. 'load:jobs', id, pack(counted))
end
local claimKey = base .. 'claim:' .. claim
if redis.call('HGET', claimKey, 'job') == id then redis.call('HSET', claimKey, 'purged', ARGV[6]) end
for _, field in ipairs({'failure', 'resultBefore'}) do
  local text = redis.call('HGET', key, field)
  if text then redis.call('HSET', key, field, withoutWords(text)) end
end
local failed = redis.call('HGET', key, 'failedThreads')
if failed then
  redis.call('HSET', key, 'failedThreads', '{"count":' .. failedOf(failed, 0) .. ',"threads":[]}')
  redis.call('HDEL', key, 'tries')
end
replaceReason(key, REMOVED)
return 1
