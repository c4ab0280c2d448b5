-- Counts the load of a queue: what is accepted and not yet completed, over both lanes and all states. The scripts that change it include this file.
--
-- The hash `load` has the totals `threads`, `bytes` and `i` (threads of the interactive lane), the same of each tenant (`t:TENANT`, `b:TENANT`,
-- `i:TENANT`), and the threads that ever left the load (`drained`, and `drained:i` of the interactive lane). The hash `load:jobs` has the part of each
-- job, `threads:bytes:interactive threads:tenant`. So a job counts once, whatever happens to it.
local TOTALS = {'threads', 'bytes', 'i', 'drained', 'drained:i'}
local OF_TENANT = {threads = 't:', bytes = 'b:', i = 'i:'}
local function readLoad(base, tenants)
  local fields = {unpack(TOTALS)}
  for tenant in pairs(tenants) do
    for _, kind in pairs(OF_TENANT) do fields[#fields + 1] = kind .. tenant end
  end
  local values, load = redis.call('HMGET', base .. 'load', unpack(fields)), {}
  for at, field in ipairs(fields) do load[field] = tonumber(values[at] or 0) end
  return load
end
local function writeLoad(base, load)
  local values = {}
  for field, value in pairs(load) do
    values[#values + 1] = field
    values[#values + 1] = string.format('%.0f', value)
  end
  redis.call('HSET', base .. 'load', unpack(values))
end
local function addPart(load, part, sign)
  for field, ofTenant in pairs(OF_TENANT) do
    load[field] = load[field] + sign * part[field]
    load[ofTenant .. part.tenant] = load[ofTenant .. part.tenant] + sign * part[field]
  end
end
local function partText(part)
  return string.format('%.0f:%.0f:%.0f:%s', part.threads, part.bytes, part.i, part.tenant)
end
local function readPart(text)
  local threads, bytes, i, tenant = string.match(text, '^(%d+):(%d+):(%d+):(.*)$')
  return {threads = tonumber(threads), bytes = tonumber(bytes), i = tonumber(i), tenant = tenant}
end
-- Takes jobs off the load, each once.
local function release(base, ids)
  local texts, parts, tenants = redis.call('HMGET', base .. 'load:jobs', unpack(ids)), {}, {}
  for at, id in ipairs(ids) do
    if texts[at] then
      parts[id] = readPart(texts[at])
      tenants[parts[id].tenant] = true
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
  local load = readLoad(base, {[part.tenant] = true})
  addPart(load, part, 1)
  writeLoad(base, load)
end
