#!lua flags=allow-oom
-- Writes fields of an import: what it is about, once all of it is in the queue, or the outcomes of one of its jobs,
-- which may come earlier. Beyond their bound in bytes, the imports that expire first are evicted first, so finished
-- ones go before unfinished ones: the time in the bounded store `imports` is that of the end.
-- ARGV: import id ('' to write none), the hash to write (about or progress), the bytes bound of all imports, ms to keep
-- an unfinished import, ms to keep a finished one, then fields and values. Returns 1 if more must be evicted: then call
-- it again without an import.
--include ../bounded.lua
local IMPORT_BYTES = 600 -- Redis's own cost of an import,
local FIELD_BYTES = 40 -- and of a field.
local EVICTED_AT_ONCE = 100
local base, id, bound = KEYS[1], ARGV[1], tonumber(ARGV[3])
local time = redis.call('TIME')
local now, imports = time[1] * 1000 + math.floor(time[2] / 1000), base .. 'imports'
local function keysOf(import)
  local key = base .. 'import:' .. import .. ':'
  return key .. 'about', key .. 'progress'
end
if id ~= '' then
  local about, progress = keysOf(id)
  local hash = ARGV[2] == 'about' and about or progress
  local bytes = tonumber(redis.call('ZSCORE', imports .. ':bytes', id) or IMPORT_BYTES)
  for i = 6, #ARGV, 2 do
    bytes = bytes + #ARGV[i + 1] - redis.call('HSTRLEN', hash, ARGV[i])
    if redis.call('HSET', hash, ARGV[i], ARGV[i + 1]) == 1 then bytes = bytes + #ARGV[i] + FIELD_BYTES end
  end
  local jobs = redis.call('HGET', about, 'jobs')
  local ms = jobs and redis.call('HLEN', progress) >= tonumber(jobs) and ARGV[5] or ARGV[4]
  redis.call('PEXPIRE', about, ms)
  redis.call('PEXPIRE', progress, ms)
  keep(imports, id, now + ms, bytes)
end
return evict(imports, bound, now, EVICTED_AT_ONCE, function(import) redis.call('UNLINK', keysOf(import)) end)
