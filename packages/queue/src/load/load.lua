-- Counts the load of a queue: what is accepted and not yet completed, over both lanes and all states. The scripts that change it include this file.
--
-- The hash `load` has the totals `threads`, `bytes` and `i` (threads of the interactive lane), the same of each tenant (`t:TENANT`, `b:TENANT`,
-- `i:TENANT`), the threads that went first (`first`), and the threads that ever left the load (`drained`, and `drained:i` of the interactive lane). The
-- hash `load:jobs` has the part of each job, `threads:bytes:interactive threads:threads that went first:tenant`. So a job counts once, whatever happens
-- to it.
local TOTALS = {'threads', 'bytes', 'i', 'drained', 'drained:i', 'first'}
local function readLoad(base, tenants)
  local fields, load = {unpack(TOTALS)}, {tenants = {}}
  for _, tenant in ipairs(tenants) do
    local last = #fields
    fields[last + 1], fields[last + 2], fields[last + 3] = 't:' .. tenant, 'b:' .. tenant, 'i:' .. tenant
  end
  local values = redis.call('HMGET', base .. 'load', unpack(fields))
  for at, field in ipairs(TOTALS) do load[field] = tonumber(values[at] or 0) end
  for at, tenant in ipairs(tenants) do
    local threads, bytes, i = unpack(values, #TOTALS + 3 * at - 2, #TOTALS + 3 * at)
    load.tenants[tenant] = {threads = tonumber(threads or 0), bytes = tonumber(bytes or 0), i = tonumber(i or 0)}
  end
  return load
end
local function writeLoad(base, load)
  local values = {}
  for at, field in ipairs(TOTALS) do values[2 * at - 1], values[2 * at] = field, load[field] end
  for tenant, own in pairs(load.tenants) do
    local last = #values
    values[last + 1], values[last + 2] = 't:' .. tenant, own.threads
    values[last + 3], values[last + 4] = 'b:' .. tenant, own.bytes
    values[last + 5], values[last + 6] = 'i:' .. tenant, own.i
  end
  redis.call('HSET', base .. 'load', unpack(values))
end
local function addPart(load, part, sign)
  local own = load.tenants[part.tenant]
  load.first = load.first + sign * part.first
  load.threads, own.threads = load.threads + sign * part.threads, own.threads + sign * part.threads
  load.bytes, own.bytes = load.bytes + sign * part.bytes, own.bytes + sign * part.bytes
  load.i, own.i = load.i + sign * part.i, own.i + sign * part.i
end
local function partText(part)
  return part.threads .. ':' .. part.bytes .. ':' .. part.i .. ':' .. part.first .. ':' .. part.tenant
end
local function readPart(text)
  local threads, bytes, i, first, tenant = string.match(text, '^(%d+):(%d+):(%d+):(%d+):(.*)$')
  return {threads = tonumber(threads), bytes = tonumber(bytes), i = tonumber(i), first = tonumber(first), tenant = tenant}
end
-- Takes jobs off the load, each once.
local function release(base, ids)
  local texts, parts, tenants = redis.call('HMGET', base .. 'load:jobs', unpack(ids)), {}, {}
  for at, id in ipairs(ids) do
    if texts[at] and not parts[id] then
      parts[id] = readPart(texts[at])
      if tenants[#tenants] ~= parts[id].tenant then tenants[#tenants + 1] = parts[id].tenant end
    end
  end
  if not next(parts) then return end
  redis.call('HDEL', base .. 'load:jobs', unpack(ids))
  local load = readLoad(base, tenants)
  for _, part in pairs(parts) do
    addPart(load, part, -1)
    load.drained = load.drained + part.threads
    load['drained:i'] = load['drained:i'] + part.i
  end
  writeLoad(base, load)
end
-- Takes a job that failed for good off the load. The job keeps its part, for the case that it is retried.
local function releaseFailed(base, id, job)
  local text = redis.call('HGET', base .. 'load:jobs', id)
  if text and redis.call('EXISTS', job) == 1 then redis.call('HSET', job, 'load', text) end
  release(base, {id})
end
-- Counts a failed job that is retried.
local function countAgain(base, id, job, text)
  redis.call('HDEL', job, 'load')
  if redis.call('HSETNX', base .. 'load:jobs', id, text) == 0 then return end
  local part = readPart(text)
  local load = readLoad(base, {part.tenant})
  addPart(load, part, 1)
  writeLoad(base, load)
end
--part audit
-- Takes jobs off the load that left the queue without completing: removed by BullMQ's own tools, or failed while their worker died. Looks at a few jobs
-- each time. KEYS: the queue's base. ARGV: cursor, number of jobs, then the beginning of each lane's keys. Returns the next cursor.
--include load.lua
local base = KEYS[1]
local cursor, found = unpack(redis.call('HSCAN', base .. 'load:jobs', ARGV[1], 'COUNT', ARGV[2]))
local gone = {}
for at = 1, #found, 2 do
  local id, exists = found[at], false
  for lane = 3, #ARGV do
    local job = ARGV[lane] .. id
    if redis.call('ZSCORE', ARGV[lane] .. 'failed', id) then releaseFailed(base, id, job) end
    exists = exists or redis.call('EXISTS', job) == 1
  end
  if not exists then gone[#gone + 1] = id end
end
if #gone > 0 then release(base, gone) end
return cursor
