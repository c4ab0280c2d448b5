-- Accepts jobs or refuses them, charges the buckets of their keys, assigns threads their stamps (their places in the
-- order of acceptance), and adds the accepted jobs, in one step.
--
-- A stamp is the last stamp plus one, or Redis's own time in µs if that is later; no replica's clock counts. So stamps
-- go on rising when Redis fails over or loses its data. A job that was accepted before stays as it is. A job whose
-- deadline has passed is refused: its caller has got another answer by now. A job whose Idempotency-Key is claimed by
-- another job is not added.
--
-- KEYS: the queue's base. ARGV: now (ms), the jobs' options, most threads, bytes and interactive threads, the part of
-- each that one tenant may have, the beginning of the interactive lane's keys, the claims and their bounds as JSON (''
-- for none), the number of callers, for each caller: tenant, bucket ('' for none), quotes a second, burst; then for
-- each entry: caller (from 1), deadline (µs), quotes to charge, the beginning of its lane's keys, id ('' only charges
-- the bucket), 1 if it may have been sent before, name, number of threads, and data after its stamp, which comes first.
-- Returns Redis's time (µs), the totals of the load, the load of each caller's tenant and the level of its bucket, and
-- the outcome for each entry: accepted, known, charged, late, rate, full, share, reused, or {claimed, id of the earlier
-- job}.
--include ../load/load.lua
--include ../bullmq-layout/add-jobs.lua
local JOB_BYTES = 625 -- What a job needs in Redis, its stamp included, beside the rest of its data.
-- While at least OTHERS interactive threads of other tenants are in the load, a tenant with fewer than OWN goes first,
-- but at most FIRST threads do at a time. A worker fetches more than that at once, so none of them starves.
local OTHERS, OWN, FIRST = 50, 4, 32
-- With less time left (µs), the caller is likely to get the job's id instead of the result, which is then retained.
local LATE = 900000
local CALLERS, CALLER_FIELDS, ENTRY_FIELDS = 10, 4, 9
local base, enqueuedAt, options, interactive = KEYS[1], ARGV[1], ARGV[2], ARGV[7]
local mostThreads, mostBytes = tonumber(ARGV[3]), tonumber(ARGV[4])
local mostInteractive, share = tonumber(ARGV[5]), tonumber(ARGV[6])
local claims = ARGV[8] ~= '' and cjson.decode(ARGV[8])
local entries = CALLERS + ARGV[9] * CALLER_FIELDS
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- A bucket is refilled steadily up to its burst. A full bucket needs no key in Redis, so its key expires.
local buckets = {}
local function openBucket(id, perSecond, burst)
  if id == '' or buckets[id] then return buckets[id] end
  local level, packed = burst, redis.call('GET', base .. 'bucket:' .. id)
  if packed then
    local before, at = cmsgpack.unpack(packed)
    level = math.min(burst, before + math.max(now - at, 0) / 1000000 * perSecond)
  end
  buckets[id] = {level = level, perSecond = perSecond, burst = burst}
  return buckets[id]
end
local function charge(bucket, quotes)
  if not bucket or quotes == 0 then return end
  bucket.level = bucket.level - quotes
  bucket.isCharged = true
end
local callers, tenants = {}, {}
for at = CALLERS, entries - 1, CALLER_FIELDS do
  local tenant = ARGV[at]
  tenants[#tenants + 1] = tenant
  local bucket = openBucket(ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]))
  callers[#callers + 1] = {tenant = tenant, bucket = bucket}
end
local load = readLoad(base, tenants)
for _, caller in ipairs(callers) do caller.own = load.tenants[caller.tenant] end

local function exceeds(used, job, most)
  if used.threads + job.threads > mostThreads * most or used.bytes + job.bytes > mostBytes * most then return true end
  return job.i > 0 and used.i + job.i > mostInteractive * most
end
local function refusalOf(job, caller, timeLeft)
  if timeLeft < 0 then return 'late' end
  if caller.bucket and caller.bucket.level <= 0 then return 'rate' end
  if exceeds(load, job, 1) then return 'full' end
  if exceeds(caller.own, job, share) then return 'share' end
end
local function goesFirst(job, own)
  return job.i > 0 and own.i < OWN and load.i - own.i >= OTHERS and load.first < FIRST
end
-- Few calls need these functions, and making one costs as much as a command.
local function claimFunctions()
--include ../bounded.lua
--include ../bullmq-layout/states.lua
--include ../replies/claims.lua
  return claimedOutcome, addClaim
end
local claimedOutcome, addClaim
if claims then claimedOutcome, addClaim = claimFunctions() end
local function wasAccepted(lane, id)
--include ../bullmq-layout/states.lua
--include ../replies/results.lua
--include ../replies/results.lua#change
  return jobExists(lane, id) or findTransient(base, id) or redis.call('EXISTS', base .. 'retained:' .. id) == 1
end

local stamp = math.max((redis.call('GET', base .. 'stamp') or 0) + 1, now)
local added, addedFirst, counted = {}, {}, {}
-- Returns the outcome of the entry whose fields begin at this index of ARGV.
local function decide(at)
  local caller, lane, id = callers[tonumber(ARGV[at])], ARGV[at + 3], ARGV[at + 4]
  local threads, rest = tonumber(ARGV[at + 7]), ARGV[at + 8]
  local quotes, timeLeft = tonumber(ARGV[at + 2]), ARGV[at + 1] - now
  if id == '' then
    charge(caller.bucket, quotes)
    return 'charged'
  end
  if ARGV[at + 5] == '1' and wasAccepted(lane, id) then return 'known' end
  local claim = claims and claims.of[id]
  local claimed = claim and claimedOutcome(base, claim)
  if claimed then
    charge(caller.bucket, quotes) -- A replay costs as much to read as the first request.
    return claimed
  end
  local job = {threads = threads, bytes = #rest + JOB_BYTES, i = 0, first = 0, tenant = caller.tenant}
  if lane == interactive then job.i = threads end
  local refusal = refusalOf(job, caller, timeLeft)
  if refusal then return refusal end
  charge(caller.bucket, quotes)
  if claim then addClaim(base, math.floor(now / 1000), claims, claim, caller.tenant, lane, id) end
  writeJob(lane .. id, ARGV[at + 6], '{"stamp":' .. string.format('%.0f', stamp) .. rest, options, enqueuedAt)
  stamp = stamp + threads
  if timeLeft < LATE then job.isRetained = true end
  if goesFirst(job, caller.own) then job.first = job.i end
  local lanes = job.first > 0 and addedFirst or added
  lanes[lane] = lanes[lane] or {}
  table.insert(lanes[lane], id)
  count(load, job, 1)
  counted[#counted + 1] = id
  counted[#counted + 1] = pack(job)
  return 'accepted'
end
local outcomes = {}
for at = entries, #ARGV, ENTRY_FIELDS do outcomes[#outcomes + 1] = decide(at) end

if #counted > 0 then
  redis.call('SET', base .. 'stamp', string.format('%.0f', stamp - 1))
  redis.call('HSET', base .. 'load:jobs', unpack(counted))
  writeLoad(base, load)
end
for lane, ids in pairs(added) do addWaiting('LPUSH', lane, ids) end
for lane, ids in pairs(addedFirst) do addWaiting('RPUSH', lane, ids) end
for id, bucket in pairs(buckets) do
  local fullAfter = math.ceil((bucket.burst - bucket.level) / bucket.perSecond * 1000) + 1000
  local packed = cmsgpack.pack(bucket.level, now)
  if bucket.isCharged then redis.call('SET', base .. 'bucket:' .. id, packed, 'PX', fullAfter) end
end
local loads = {}
for at, caller in ipairs(callers) do
  local own, bucket = caller.own, caller.bucket
  loads[at] = {own.threads, own.bytes, own.i, bucket and math.floor(bucket.level) or 0}
end
return {now, {load.threads, load.bytes, load.i, load.drained, load.drainedI}, loads, outcomes}
