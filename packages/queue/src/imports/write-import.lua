-- Imports in Redis. The hash `import:ID:about` has the numbers of an import, once all of its jobs are in the queue.
-- `import:ID:progress` has the outcomes of its jobs, which may come earlier. `imports` is a bounded store of tenants,
-- with the expiry as time: finished imports are evicted before unfinished ones. Needs `bounded.lua`.
local IMPORT_BYTES = 600 -- Redis's own cost of an import.
local FIELD_BYTES = 40 -- Redis's own cost of a field.
local IMPORTS_AT_ONCE = 100
local function keysOf(base, import)
  local key = base .. 'import:' .. import .. ':'
  return key .. 'about', key .. 'progress'
end
-- Writes fields and values, in turn, to the hash `name` (about or progress) of an import.
-- @param bounds bytes of all imports, unfinishedMs (the time to keep an unfinished one) and finishedMs.
local function writeImport(base, tenant, id, name, fields, now, bounds)
  local about, progress = keysOf(base, id)
  local hash, imports = name == 'about' and about or progress, base .. 'imports'
  local bytes = tonumber(redis.call('ZSCORE', imports .. ':of:' .. tenant .. ':bytes', id) or IMPORT_BYTES)
  for i = 1, #fields, 2 do
    local field, value = fields[i], fields[i + 1]
    bytes = bytes + #value - redis.call('HSTRLEN', hash, field)
    if redis.call('HSET', hash, field, value) == 1 then bytes = bytes + #field + FIELD_BYTES end
  end
  local jobs = redis.call('HGET', about, 'jobs')
  local ms = jobs and redis.call('HLEN', progress) >= tonumber(jobs) and bounds.finishedMs or bounds.unfinishedMs
  redis.call('PEXPIRE', about, ms)
  redis.call('PEXPIRE', progress, ms)
  keepOf(imports, tenant, id, now + ms, bytes)
end
-- Returns 1 if more must be evicted.
local function evictImports(base, bounds, now)
  local function remove(import) redis.call('UNLINK', keysOf(base, import)) end
  return evictOfTenants(base .. 'imports', bounds.bytes, now, IMPORTS_AT_ONCE, remove)
end
--part write
#!lua flags=allow-oom
-- ARGV  1  a JSON object:
--          bounds  see `writeImport`
--          import  absent if this call only evicts: tenant, id, hash (about or progress), fields
-- Returns 1 if more must be evicted: then call it again without an import.
--include ../bounded.lua
--include write-import.lua
local base, input, time = KEYS[1], cjson.decode(ARGV[1]), redis.call('TIME')
local now, import, bounds = time[1] * 1000 + math.floor(time[2] / 1000), input.import, input.bounds
if import then writeImport(base, import.tenant, import.id, import.hash, import.fields, now, bounds) end
return evictImports(base, bounds, now)
