#!lua flags=allow-oom
-- Searches jobs for a text: their names first, and payloads only for what a name lacks. Each call examines a bounded
-- number of jobs and bytes, so that Redis is blocked for about a millisecond.
-- ARGV  1     the search's token
--       2     what to examine:
--             names: jobs that count as load; by payload if they have several threads, as names lack most threads
--             payloads: the payloads of the other jobs that count as load
--             beginning of a lane's keys: its failed jobs
--       3     cursor ('' to examine only the jobs of 11 …)
--       4-5   beginning of the interactive and of the bulk lane's keys
--       6     tenant ('' for all)
--       7     a part of the reason
--       8     the text
--       9     the text as it stands in a JSON string
--       10    '"' if the text is whole, '' if it is a beginning
--       11 …  id and lane of each job whose payload the call before had no room for
-- Returns `busy` if another search has the lease, else
--       1     the next cursor
--       2     number of jobs examined
--       3     id and lane of each job that matches
--       4     id and lane of each job whose payload is left to the next call
--include @sluice/queue/load/load.lua#release
--include @sluice/queue/bullmq-layout/jobs.lua#states
--include search-lease.lua
-- A name costs 1 µs, a payload of 1 KB 3 µs.
local NAMES_AT_ONCE, PAYLOADS_AT_ONCE, BYTES_AT_ONCE = 1000, 400, 1048576
local FIELDS = {'"externalId"', '"requestId"', '"import":{"id"'}
local base, token, set, cursor, interactive, bulk, tenant, reason, text, json, closing = KEYS[1], unpack(ARGV, 1, 10)
if not renewSearch(base, token) then return 'busy' end

local function nameMatches(name)
  local slash = string.find(name, '/', 1, true) or 0
  if closing == '' then return string.sub(name, slash + 1, slash + #text) == text end
  return string.sub(name, slash + 1) == text
end
-- `JSON.stringify` wrote the data, so these bytes begin a value, never a part of a text.
local needle = ':"' .. json .. closing
local function dataMatches(data)
  local at = string.find(data, needle, 1, true)
  while at do
    for _, field in ipairs(FIELDS) do
      if string.sub(data, at - #field, at - 1) == field then return true end
    end
    at = string.find(data, needle, at + 1, true)
  end
  return false
end

local found, left, bytes = {}, {}, 0
local function add(list, id, lane)
  list[#list + 1] = {id, lane}
end
local function examineData(id, lane)
  if bytes > BYTES_AT_ONCE then return add(left, id, lane) end
  local data = readData(lane, id)
  bytes = bytes + #data
  if dataMatches(data) then add(found, id, lane) end
end
for at = 11, #ARGV, 2 do examineData(ARGV[at], ARGV[at + 1]) end
if cursor == '' then return {'', 0, found, left} end

local jobs, most = nil, set == 'names' and NAMES_AT_ONCE or PAYLOADS_AT_ONCE
if set == 'names' or set == 'payloads' then
  cursor, jobs = unpack(redis.call('HSCAN', base .. 'load:jobs', cursor, 'COUNT', most))
  for at = 1, #jobs, 2 do
    local id, job = jobs[at], read(jobs[at + 1])
    local lane, isAlone = job.i > 0 and interactive or bulk, job.threads == 1
    if tenant == '' or job.tenant == tenant then
      if isAlone and set == 'names' then
        if nameMatches(job.name) then add(found, id, lane) end
      elseif isAlone == (set == 'payloads') then
        examineData(id, lane)
      end
    end
  end
else
  cursor, jobs = scanFailed(set, cursor, most)
  reason = string.lower(reason)
  for at = 1, #jobs, 2 do
    local id = jobs[at]
    local name, failure = readFailed(set, id)
    if name and string.find(string.lower(failure or ''), reason, 1, true) then
      if nameMatches(name) then add(found, id, set) else examineData(id, set) end
    end
  end
end
return {cursor, #jobs / 2, found, left}
