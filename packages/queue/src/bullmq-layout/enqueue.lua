-- Accepts jobs or refuses them, charges the keys' buckets, gives threads their stamps (their places in the order of acceptance), and adds the accepted
-- jobs, in one step.
--
-- Redis gives the order, not a replica's clock: the last stamp plus one, or Redis's own time in µs if that is later. So stamps go on rising when Redis
-- fails over or loses its data. A job gets the keys that BullMQ's own script gives it, without events, which nobody reads. A job that was accepted
-- before stays as it is. A job whose deadline has passed is refused: its caller has got another answer by now.
--
-- KEYS: the queue's base. ARGV: now (ms), the jobs' options, most threads, bytes and interactive threads, the part of each that one tenant may take,
-- then for each entry: deadline (µs), tenant, bucket ('' for none), quotes to charge, quotes a second, burst, the beginning of its lane's keys, id ('' only
-- charges the bucket), name, number of threads, number of interactive threads, and data, which begins with a stamp of 0.
-- Returns Redis's time (µs) and the totals of the load, then for each entry: the first stamp or a word, its tenant's load, and the bucket's level.
--include load.lua
local DATA_AFTER_STAMP = #'{"stamp":0' + 1
local JOB_BYTES = 600 -- What a job takes in Redis beside its data.
local FIRST, FIELDS = 7, 12
local base, share = KEYS[1], tonumber(ARGV[6])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local bounds = {threads = tonumber(ARGV[3]), bytes = tonumber(ARGV[4]), i = tonumber(ARGV[5])}
local tenants, buckets = {}, {}
for at = FIRST, #ARGV, FIELDS do tenants[ARGV[at + 1]] = true end
local load = readLoad(base, tenants)

-- A bucket fills by and by up to its burst. A full one needs no key, so it expires.
local function openBucket(id, perSecond, burst)
  if buckets[id] then return buckets[id] end
  local level, at = string.match(redis.call('GET', base .. 'bucket:' .. id) or '', '^(%S+) (%d+)$')
  local filled = level and level + math.max(now - at, 0) / 1000000 * perSecond or burst
  buckets[id] = {level = math.min(filled, burst), perSecond = perSecond, burst = burst}
  return buckets[id]
end
local function charge(bucket, quotes)
  bucket.level = bucket.level - quotes
  bucket.charged = bucket.charged or quotes > 0
end
local function exceeds(part, ofTenant, most)
  for field, kind in pairs(OF_TENANT) do
    local used = ofTenant and load[kind .. part.tenant] or load[field]
    if part[field] > 0 and used + part[field] > bounds[field] * most then return true end
  end
end
local function refusalOf(part, bucket, deadline)
  if now > deadline then return 'late' end
  if bucket and bucket.level <= 0 then return 'rate' end
  if exceeds(part, false, 1) then return 'full' end
  if exceeds(part, true, share) then return 'share' end
end

local last = tonumber(redis.call('GET', base .. 'stamp') or '0')
local stamp = math.max(last + 1, now)
local added, parts, verdicts = {}, {}, {}
local function accept(lane, id, name, data, part)
  local first = string.format('%.0f', stamp)
  stamp = stamp + part.threads
  data = '{"stamp":' .. first .. string.sub(data, DATA_AFTER_STAMP)
  redis.call('HSET', lane .. id, 'name', name, 'data', data, 'opts', ARGV[2], 'timestamp', ARGV[1], 'delay', 0, 'priority', 0)
  added[lane] = added[lane] or {}
  table.insert(added[lane], id)
  addPart(load, part, 1)
  parts[#parts + 1] = id
  parts[#parts + 1] = partText(part)
  return first
end
local function decide(deadline, tenant, bucketId, quotes, perSecond, burst, lane, id, name, threads, interactive, data)
  local bucket = bucketId ~= '' and openBucket(bucketId, tonumber(perSecond), tonumber(burst)) or nil
  if id == '' then
    if bucket then charge(bucket, quotes + 0) end
    return 'charged', bucket
  end
  if redis.call('EXISTS', lane .. id, base .. 'result:' .. id, base .. 'retained:' .. id) > 0 then return 'known', bucket end
  local part = {threads = tonumber(threads), bytes = #data + JOB_BYTES, i = tonumber(interactive), tenant = tenant}
  local refusal = refusalOf(part, bucket, tonumber(deadline))
  if refusal then return refusal, bucket end
  if bucket then charge(bucket, quotes + 0) end
  return accept(lane, id, name, data, part), bucket
end
for at = FIRST, #ARGV, FIELDS do
  local verdict, bucket = decide(unpack(ARGV, at, at + FIELDS - 1))
  verdicts[#verdicts + 1] = {verdict, ARGV[at + 1], bucket}
end

if #parts > 0 then
  redis.call('SET', base .. 'stamp', string.format('%.0f', stamp - 1))
  redis.call('HSET', base .. 'load:jobs', unpack(parts))
  writeLoad(base, load)
end
for lane, ids in pairs(added) do
  redis.call('LPUSH', lane .. 'wait', unpack(ids))
  if redis.call('HEXISTS', lane .. 'meta', 'paused') == 0 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
for id, bucket in pairs(buckets) do
  local fullAfter = math.ceil((bucket.burst - bucket.level) / bucket.perSecond * 1000) + 1000
  if bucket.charged then redis.call('SET', base .. 'bucket:' .. id, string.format('%.3f %.0f', bucket.level, now), 'PX', fullAfter) end
end
local reply = {now}
for _, field in ipairs(TOTALS) do reply[#reply + 1] = load[field] end
for _, verdict in ipairs(verdicts) do
  reply[#reply + 1] = verdict[1]
  for _, kind in ipairs({'t:', 'b:', 'i:'}) do reply[#reply + 1] = load[kind .. verdict[2]] end
  reply[#reply + 1] = verdict[3] and math.floor(verdict[3].level) or 0
end
return reply
