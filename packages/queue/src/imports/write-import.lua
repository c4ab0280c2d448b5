#!lua flags=allow-oom
-- Writes fields of an import: what it is about, once all of it is in the queue, or the outcomes of one of its jobs, which may come earlier. Beyond their
-- bound in bytes, the imports that expire first are evicted first, so finished ones go before unfinished ones.
--
-- KEYS: the queue's base. ARGV: import id ('' to write none), the hash to write (about or progress), the bytes bound of all imports, ms to keep an unfinished
-- import, ms to keep a finished one, then fields and values. Returns 1 if more must be evicted: then call it again without an import.
local IMPORT_BYTES = 600 -- Redis's own cost of an import,
local FIELD_BYTES = 40 -- and of a field.
local EVICTED_AT_ONCE = 100
local base, id, bound = KEYS[1], ARGV[1], tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function keysOf(import)
  local key = base .. 'import:' .. import .. ':'
  return key .. 'about', key .. 'progress'
end
local function write()
  local about, progress = keysOf(id)
  local hash, bytes = ARGV[2] == 'about' and about or progress, 0
  for i = 6, #ARGV, 2 do
    bytes = bytes + #ARGV[i + 1] - redis.call('HSTRLEN', hash, ARGV[i])
    if redis.call('HSET', hash, ARGV[i], ARGV[i + 1]) == 1 then bytes = bytes + #ARGV[i] + FIELD_BYTES end
  end
  local jobs = redis.call('HGET', about, 'jobs')
  local ms = jobs and redis.call('HLEN', progress) >= tonumber(jobs) and ARGV[5] or ARGV[4]
  redis.call('PEXPIRE', about, ms)
  redis.call('PEXPIRE', progress, ms)
  if redis.call('ZADD', base .. 'imports', now + ms, id) == 1 then bytes = bytes + IMPORT_BYTES end
  redis.call('HINCRBY', base .. 'import-sizes', id, bytes)
  redis.call('INCRBY', base .. 'bytes:imports', bytes)
end
if id ~= '' then write() end
local total = tonumber(redis.call('GET', base .. 'bytes:imports') or '0')
for _ = 1, EVICTED_AT_ONCE do
  local first = redis.call('ZRANGE', base .. 'imports', 0, 0, 'WITHSCORES')
  if not first[1] or (total <= bound and tonumber(first[2]) >= now) then return 0 end
  redis.call('ZREM', base .. 'imports', first[1])
  total = redis.call('DECRBY', base .. 'bytes:imports', redis.call('HGET', base .. 'import-sizes', first[1]))
  redis.call('HDEL', base .. 'import-sizes', first[1])
  redis.call('UNLINK', keysOf(first[1]))
end
return 1
