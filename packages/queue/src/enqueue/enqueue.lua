-- Accepts jobs or refuses them, charges the buckets of their keys, gives threads their stamps (their places in the order of acceptance), and adds the
-- accepted jobs, in one step.
--
-- Redis gives the order, not a replica's clock: the last stamp plus one, or Redis's own time in µs if that is later. So stamps go on rising when Redis
-- fails over or loses its data. A job gets the keys that BullMQ's own script gives it, without events, which nobody reads. A job that was accepted
-- before stays as it is. A job whose deadline has passed is refused: its caller has got another answer by now. A job whose key is claimed is not added.
--
-- KEYS: the queue's base. ARGV: now (ms), the jobs' options, most threads, bytes and interactive threads, the part of each that one tenant may take, the
-- beginning of the interactive lane's keys, the number of callers, the claims and their bounds as JSON ('' for none), for each caller: tenant, bucket ('' for
-- none), quotes a second, burst; then for each entry: caller (from 1), deadline (µs), quotes to charge, the beginning of its lane's keys, id ('' only charges
-- the bucket), name, number of threads, and data, which begins with a stamp of 0.
-- Returns Redis's time (µs), the totals of the load, for each caller the load of its tenant and the level of its bucket, and for each entry the first
-- stamp or a word: known, charged, late, rate, full, share, reused, or `claimed` with the id of the earlier job.
--include ../load/load.lua
--include ../replies/claims.lua
local DATA_AFTER_STAMP = #'{"stamp":0' + 1
local JOB_BYTES = 600 -- What a job takes in Redis beside its data.
-- While so many interactive threads of other tenants are in the load, a tenant with so few of its own goes first, but only so many threads at a time. A
-- worker fetches more than that at once, so none of them starves.
local OTHERS, OWN, FIRST = 50, 4, 32
local LATE = 900000 -- With so little time left (µs), the caller is likely to get the job's id instead of the result, which is then retained.
local CALLERS, CALLER_FIELDS, ENTRY_FIELDS = 10, 4, 8
local base, mostThreads, mostBytes, mostInteractive, share = KEYS[1], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local entries = CALLERS + ARGV[8] * CALLER_FIELDS
local claims = ARGV[9] ~= '' and cjson.decode(ARGV[9])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local tenants = {}
for at = CALLERS, entries - 1, CALLER_FIELDS do tenants[#tenants + 1] = ARGV[at] end
local load = readLoad(base, tenants)

-- A bucket fills by and by up to its burst. A full one needs no key, so it expires.
local buckets = {}
local function openBucket(id, perSecond, burst)
  if id == '' or buckets[id] then return buckets[id] end
  local level, at = string.match(redis.call('GET', base .. 'bucket:' .. id) or '', '^(%S+) (%d+)$')
  local filled = level and level + math.max(now - at, 0) / 1000000 * perSecond or burst
  buckets[id] = {level = math.min(filled, burst), perSecond = perSecond, burst = burst}
  return buckets[id]
end
local function charge(bucket, quotes)
  if not bucket or quotes == 0 then return end
  bucket.level = bucket.level - quotes
  bucket.charged = true
end
local callers = {}
for at = CALLERS, entries - 1, CALLER_FIELDS do
  local bucket = openBucket(ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]))
  callers[#callers + 1] = {tenant = ARGV[at], bucket = bucket, own = load.tenants[ARGV[at]]}
end

local function exceeds(used, part, most)
  if used.threads + part.threads > mostThreads * most or used.bytes + part.bytes > mostBytes * most then return true end
  return part.i > 0 and used.i + part.i > mostInteractive * most
end
local function refusalOf(part, caller, timeLeft)
  if timeLeft < 0 then return 'late' end
  if caller.bucket and caller.bucket.level <= 0 then return 'rate' end
  if exceeds(load, part, 1) then return 'full' end
  if exceeds(caller.own, part, share) then return 'share' end
end
local function goesFirst(part, own)
  return part.i > 0 and own.i < OWN and load.i - own.i >= OTHERS and load.first < FIRST
end

-- Asks for all entries at once, because hardly any job was accepted before.
local known = {}
local function findKnown()
  local keys = {}
  for at = entries, #ARGV, ENTRY_FIELDS do
    local id = ARGV[at + 4]
    if id ~= '' then
      local last = #keys
      keys[last + 1], keys[last + 2], keys[last + 3] = ARGV[at + 3] .. id, base .. 'result:' .. id, base .. 'retained:' .. id
    end
  end
  if #keys == 0 or redis.call('EXISTS', unpack(keys)) == 0 then return end
  for at = 1, #keys, 3 do
    if redis.call('EXISTS', keys[at], keys[at + 1], keys[at + 2]) > 0 then known[keys[at]] = true end
  end
end
findKnown()

local last = tonumber(redis.call('GET', base .. 'stamp') or '0')
local stamp = math.max(last + 1, now)
local added, addedFirst, parts = {}, {}, {}
-- @param at the place of the entry in ARGV
local function accept(at, part, caller, timeLeft)
  local lane, id, first = ARGV[at + 3], ARGV[at + 4], string.format('%.0f', stamp)
  local key, data = lane .. id, '{"stamp":' .. first .. string.sub(ARGV[at + 7], DATA_AFTER_STAMP)
  stamp = stamp + part.threads
  redis.call('HSET', key, 'name', ARGV[at + 5], 'data', data, 'opts', ARGV[2], 'timestamp', ARGV[1], 'delay', 0, 'priority', 0)
  if timeLeft < LATE then redis.call('HSET', key, 'sluice:retained', 1) end
  if goesFirst(part, caller.own) then part.first = part.i end
  local lanes = part.first > 0 and addedFirst or added
  lanes[lane] = lanes[lane] or {}
  table.insert(lanes[lane], id)
  addPart(load, part, 1)
  parts[#parts + 1] = id
  parts[#parts + 1] = partText(part)
  known[key] = true
  return first
end
local function decide(at)
  local caller, lane, id, threads = callers[tonumber(ARGV[at])], ARGV[at + 3], ARGV[at + 4], tonumber(ARGV[at + 6])
  if id == '' then
    charge(caller.bucket, tonumber(ARGV[at + 2]))
    return 'charged'
  end
  if known[lane .. id] then return 'known' end
  local claim = claims and claims.of[id]
  local claimed = claim and wordOfClaim(base, claim)
  if claimed then
    charge(caller.bucket, tonumber(ARGV[at + 2])) -- A replay costs as much to read as the first request.
    return claimed
  end
  local part = {threads = threads, bytes = #ARGV[at + 7] + JOB_BYTES, i = lane == ARGV[7] and threads or 0, first = 0, tenant = caller.tenant}
  local timeLeft = ARGV[at + 1] - now
  local refusal = refusalOf(part, caller, timeLeft)
  if refusal then return refusal end
  charge(caller.bucket, tonumber(ARGV[at + 2]))
  if claim then addClaim(base, math.floor(now / 1000), claims, claim, caller.tenant, lane, id) end
  return accept(at, part, caller, timeLeft)
end
local words = {}
for at = entries, #ARGV, ENTRY_FIELDS do words[#words + 1] = decide(at) end

if #parts > 0 then
  redis.call('SET', base .. 'stamp', string.format('%.0f', stamp - 1))
  redis.call('HSET', base .. 'load:jobs', unpack(parts))
  writeLoad(base, load)
end
for command, lanes in pairs({LPUSH = added, RPUSH = addedFirst}) do
  for lane, ids in pairs(lanes) do
    redis.call(command, lane .. 'wait', unpack(ids))
    if redis.call('HEXISTS', lane .. 'meta', 'paused') == 0 then redis.call('ZADD', lane .. 'marker', 0, '0') end
  end
end
for id, bucket in pairs(buckets) do
  local fullAfter = math.ceil((bucket.burst - bucket.level) / bucket.perSecond * 1000) + 1000
  if bucket.charged then redis.call('SET', base .. 'bucket:' .. id, string.format('%.3f %.0f', bucket.level, now), 'PX', fullAfter) end
end
local reply = {now}
for _, field in ipairs(TOTALS) do reply[#reply + 1] = load[field] end
for _, caller in ipairs(callers) do
  local last = #reply
  reply[last + 1], reply[last + 2], reply[last + 3] = caller.own.threads, caller.own.bytes, caller.own.i
  reply[last + 4] = caller.bucket and math.floor(caller.bucket.level) or 0
end
for _, word in ipairs(words) do reply[#reply + 1] = word end
return reply
