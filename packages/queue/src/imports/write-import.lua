-- Imports in Redis. The hash `import:ID:about` has the numbers of an import. If nobody waits for
-- the import, it is written once all of the import's jobs are in the queue. The hash
-- `import:ID:progress` has the outcomes of the import's jobs, which may come earlier, or of its
-- requests if callers wait. The sorted set `import:ID:problems` names the outcomes with problems,
-- by the index of their first problem. The field `totals` of `about` has the sums of the outcomes,
-- for lists. `imports` is a bounded store of tenants. Its times are times of expiry, so finished
-- imports are evicted before unfinished ones. Needs `bounded.lua`.
local IMPORT_BYTES = 800 -- Redis's own cost of an import, and its totals.
local FIELD_BYTES = 40 -- Redis's own cost of a field.
local IMPORTS_AT_ONCE = 100
local function keysOf(base, import)
  local key = base .. 'import:' .. import .. ':'
  return key .. 'about', key .. 'progress', key .. 'problems'
end
-- Adds an outcome (JSON) to the totals, and subtracts the earlier outcome of the same job or
-- request. Returns the outcome with its first problems, or without problems if the import has
-- enough.
local function addUp(about, before, outcome, now, most)
  local totals = cjson.decode(redis.call('HGET', about, 'totals') or '{}')
  local old, decoded = before and cjson.decode(before).counts or {}, cjson.decode(outcome)
  local new = decoded.counts
  local hasEnough = (totals.failed or 0) - (old.failed or 0) >= most
  for name, count in pairs(new) do totals[name] = (totals[name] or 0) + count - (old[name] or 0) end
  totals.begunAt, totals.changedAt, totals.waitsFor = totals.begunAt or now, now, decoded.waitsFor
  redis.call('HSET', about, 'totals', cjson.encode(totals))
  if hasEnough then return cjson.encode({counts = new, waitsFor = decoded.waitsFor}) end
  return outcome, decoded.problems and decoded.problems[1]
end
-- Writes fields and values, in turn, to the hash `name` (about or progress) of an import. An import
-- of another tenant stays as it is: callers choose ids.
-- @param bounds bytes of all imports, unfinishedMs (the time to keep an unfinished one), finishedMs
-- and problems.
local function writeImport(base, tenant, id, name, fields, now, bounds)
  local about, progress, problems = keysOf(base, id)
  if (redis.call('HGET', about, 'tenant') or tenant) ~= tenant then return end
  local hash, imports = name == 'about' and about or progress, base .. 'imports'
  local bytes = tonumber(redis.call('ZSCORE', ownStore(imports, tenant) .. ':bytes', id) or IMPORT_BYTES)
  for i = 1, #fields, 2 do
    local field, value = fields[i], fields[i + 1]
    local problem
    if name == 'progress' then
      value, problem = addUp(about, redis.call('HGET', progress, field), value, now, bounds.problems)
    end
    if problem and redis.call('ZADD', problems, problem.index, field) == 1 then bytes = bytes + #field + FIELD_BYTES end
    bytes = bytes + #value - redis.call('HSTRLEN', hash, field)
    if redis.call('HSET', hash, field, value) == 1 then bytes = bytes + #field + FIELD_BYTES end
  end
  local jobs, known = unpack(redis.call('HMGET', about, 'jobs', 'tenant'))
  local isFinished = known and (not jobs or redis.call('HLEN', progress) >= tonumber(jobs))
  local ms = isFinished and bounds.finishedMs or bounds.unfinishedMs
  redis.call('PEXPIRE', about, ms)
  redis.call('PEXPIRE', progress, ms)
  redis.call('PEXPIRE', problems, ms)
  keepOf(imports, tenant, id, now + ms, bytes)
end
-- Returns 1 if more must be evicted.
local function evictImports(base, bounds, now)
  local function remove(import) redis.call('UNLINK', keysOf(base, import)) end
  return evictOfTenants(base .. 'imports', bounds.bytes, now, IMPORTS_AT_ONCE, remove)
end
--part find
-- Returns the number of an import's outcomes, and the outcomes: all if they are few, otherwise only
-- those with problems, up to a bound in bytes. Returns nothing if the import belongs to another
-- tenant.
-- ARGV  id, tenant ('' for any), the most outcomes, their bytes
--include write-import.lua
local about, progress, problems = keysOf(KEYS[1], ARGV[1])
local tenant, most = redis.call('HGET', about, 'tenant'), tonumber(ARGV[3])
if not tenant or ARGV[2] ~= '' and ARGV[2] ~= tenant then return end
local count, bytes = redis.call('HLEN', progress), 0
local found = {count}
local fields = count > most and redis.call('ZRANGE', problems, 0, most - 1) or redis.call('HKEYS', progress)
for at, field in ipairs(fields) do
  local outcome = redis.call('HGET', progress, field)
  found[at + 1], bytes = outcome, bytes + #outcome
  if count > most and bytes > tonumber(ARGV[4]) then break end
end
return found
--part write
#!lua flags=allow-oom
-- ARGV  1  a JSON object:
--          bounds  see `writeImport`
--          import  absent if this call only evicts: tenant, id, about and progress (fields of these hashes)
-- Returns 1 if more must be evicted: then call it again without an import.
--include ../bounded.lua
--include write-import.lua
local base, input, time = KEYS[1], cjson.decode(ARGV[1]), redis.call('TIME')
local now, import, bounds = time[1] * 1000 + math.floor(time[2] / 1000), input.import, input.bounds
for _, name in ipairs({'about', 'progress'}) do
  local fields = import and import[name]
  if fields then writeImport(base, import.tenant, import.id, name, fields, now, bounds) end
end
return evictImports(base, bounds, now)
