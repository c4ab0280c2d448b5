-- Imports in Redis. The hash `import:ID:about` has the numbers of an import, once all of its jobs are in the queue.
-- `import:ID:progress` has the outcomes of its jobs, which may come earlier. `imports` is a bounded store of tenants,
-- with the expiry as time: finished imports are evicted before unfinished ones. Needs `bounded.lua`.
local IMPORT_BYTES = 600 -- Redis's own cost of an import,
local FIELD_BYTES = 40 -- and of a field.
local IMPORTS_AT_ONCE = 100
local function keysOf(base, import)
  local key = base .. 'import:' .. import .. ':'
  return key .. 'about', key .. 'progress'
end
-- Writes fields and values of an import.
-- @param name of the hash to write: about or progress.
-- @param unfinishedMs the time to keep an unfinished import, and `finishedMs` a finished one.
local function writeImport(base, tenant, id, name, fields, now, unfinishedMs, finishedMs)
  local about, progress = keysOf(base, id)
  local hash, imports = name == 'about' and about or progress, base .. 'imports'
  local bytes = tonumber(redis.call('ZSCORE', imports .. ':of:' .. tenant .. ':bytes', id) or IMPORT_BYTES)
  for i = 1, #fields, 2 do
    local field, value = fields[i], fields[i + 1]
    bytes = bytes + #value - redis.call('HSTRLEN', hash, field)
    if redis.call('HSET', hash, field, value) == 1 then bytes = bytes + #field + FIELD_BYTES end
  end
  local jobs = redis.call('HGET', about, 'jobs')
  local ms = jobs and redis.call('HLEN', progress) >= tonumber(jobs) and finishedMs or unfinishedMs
  redis.call('PEXPIRE', about, ms)
  redis.call('PEXPIRE', progress, ms)
  keepOf(imports, tenant, id, now + ms, bytes)
end
-- Returns 1 if more must be evicted.
local function evictImports(base, bound, now)
  local function remove(import) redis.call('UNLINK', keysOf(base, import)) end
  return evictOfTenants(base .. 'imports', bound, now, IMPORTS_AT_ONCE, remove)
end
--part write
#!lua flags=allow-oom
-- Writes fields of an import.
-- ARGV  1    bytes bound of all imports
--       2    ms to keep an unfinished import
--       3    ms to keep a finished one
--       unless it only evicts:
--       4    tenant
--       5    import id
--       6    hash: about or progress
--       7 …  fields and values
-- Returns 1 if more must be evicted: then call it again without an import.
--include ../bounded.lua
--include write-import.lua
local base, bound, tenant, id = KEYS[1], tonumber(ARGV[1]), ARGV[4], ARGV[5]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if id then writeImport(base, tenant, id, ARGV[6], {unpack(ARGV, 7)}, now, ARGV[2], ARGV[3]) end
return evictImports(base, bound, now)
