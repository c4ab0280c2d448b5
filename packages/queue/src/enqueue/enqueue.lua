-- In one step, accepts or refuses jobs, charges the buckets of their keys, assigns stamps to
-- threads (their places in the order of acceptance), and adds the accepted jobs. Refuses a job
-- whose deadline has passed, because its caller has already got another answer.
--
-- A stamp is the last stamp plus one, or Redis's own time in µs if that is later. Stamps stay below
-- `ceiling`. A server that did not write the ceiling (a promoted replica, or the same server after
-- a restart) may have lost the last stamps, and its clock may be behind. It continues from the
-- ceiling, so stamps keep rising unless it lost stamps of more than SPARE.
--
-- ARGV  1     a JSON object:
--             most         most threads, bytes and interactive threads in the load
--             share        the part of each that one tenant may have
--             interactive  prefix of the interactive lane's keys
--             server       id of this server ('' if unknown)
--             claims       ms to keep claims and the bytes bound of all; absent if no entry has a claim
--             callers      each with its tenant and, if its quotes are charged: bucket, perSecond, burst
--             entries      each with caller (from 1), deadline (µs), quotes to charge, prefix of its lane's keys, id
--                          ('' only charges the bucket), name, number of threads and claim
--       2     the jobs' options, as BullMQ stores them
--       3 …   the data of each entry after its stamp, which comes first
-- Returns
--       1     Redis's time (µs)
--       2     totals of the load: threads, bytes, interactive threads, drained threads, drained interactive threads
--       3     for each caller: threads, bytes and interactive threads of its tenant, and the level of its bucket
--       4     for each entry: accepted, charged, late, rate, full, share, reused, or {claimed, id of the earlier job}
--include ../load/load.lua
--include ../bullmq-layout/jobs.lua#add
local JOB_BYTES = 625 -- What a job needs in Redis beside its name and the rest of its data.
-- If less time than this is left until the deadline (µs), the caller is likely to get the job's id
-- instead of the result. The result is then retained.
local LATE = 900000
-- How far the ceiling is above the last stamp (µs): AHEAD when it is written, and always at least
-- SPARE. It is at most FARTHEST above the clock, because behind a proxy that leads each connection
-- to another server, every call could raise it.
local SPARE, AHEAD, FARTHEST = 5000000, 10000000, 600000000
local MOVED = 1000000 -- A smaller step of the clock (µs) does not matter.
local base, input = KEYS[1], cjson.decode(ARGV[1])
local most, claims = input.most, input.claims
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local enqueuedAt = string.format('%.0f', math.floor(now / 1000))

local callers, tenants, buckets = input.callers, {}, {}
for at, caller in ipairs(callers) do
  local id, burst = caller.bucket, caller.burst
  if id and not buckets[id] then
    -- A bucket is refilled steadily up to its burst. A full bucket needs no key, so the key
    -- expires. It is full, too, if the clock was moved back: nobody knows how long it was refilled,
    -- and it would stay as it is until the clock has caught up.
    local level, packed = burst, redis.call('GET', base .. 'bucket:' .. id)
    if packed then
      local before, since = cmsgpack.unpack(packed)
      local seconds = since - now > MOVED and math.huge or math.max(now - since, 0) / 1000000
      level = math.min(burst, before + seconds * caller.perSecond)
    end
    buckets[id] = {level = level, perSecond = caller.perSecond, burst = burst}
  end
  tenants[at], caller.bucket = caller.tenant, buckets[id]
end
local load = readLoad(base, tenants)
for _, caller in ipairs(callers) do caller.own = load.tenants[caller.tenant] end

local function exceeds(used, job, part)
  local threads, bytes = used.threads + job.threads, used.bytes + job.bytes
  if threads > most.threads * part or bytes > most.bytes * part then return true end
  return job.interactive > 0 and used.interactive + job.interactive > most.interactive * part
end
local replayOf, claimFor
if claims then
--include ../replies/claims.lua
  replayOf, claimFor = claimedOutcome, addClaim
end

local ceiling, writer = unpack(redis.call('HMGET', base .. 'load', 'ceiling', 'server'))
local server = input.server ~= '' and input.server or writer or ''
local isOfOther = writer and writer ~= server
local stamp = math.max(load.stamp + 1, now, isOfOther and tonumber(ceiling) or 0)
local added, inserted, counted, outcomes = {}, {}, {}, {}
for at, entry in ipairs(input.entries) do
  local caller, id, lane, name, rest = callers[entry.caller], entry.id, entry.lane, entry.name, ARGV[at + 2]
  local claim, bucket, own, timeLeft = entry.claim, caller.bucket, caller.own, entry.deadline - now
  local outcome = id == '' and 'charged' or claim and replayOf(base, claim)
  local refusal, job
  if not outcome then
    job = {threads = entry.threads, bytes = #rest + #name + JOB_BYTES, interactive = 0, tenant = caller.tenant}
    if lane == input.interactive then job.interactive = job.threads end
    refusal = timeLeft < 0 and 'late' or bucket and bucket.level <= 0 and 'rate'
    refusal = refusal or exceeds(load, job, 1) and 'full' or exceeds(own, job, input.share) and 'share'
  end
  -- A repeated request is charged, too: reading it costs as much as reading the first one.
  if bucket and not refusal and entry.quotes > 0 then
    bucket.level, bucket.isCharged = bucket.level - entry.quotes, true
  end
  if not outcome and not refusal then
    if claim then claimFor(base, math.floor(now / 1000), claims, claim, caller.tenant, lane, id) end
    writeJob(lane .. id, name, '{"stamp":' .. string.format('%.0f', stamp) .. rest, ARGV[2], enqueuedAt)
    stamp = stamp + job.threads
    count(load, job, 1)
    -- Tenants take turns in the interactive lane. For example, in front of a tenant's third job are
    -- the tenant's first two jobs and three jobs of each other tenant. So a flood from one tenant
    -- delays the others only by these turns. The job's place is the number of its tenant's jobs
    -- times the number of tenants. (An interactive job has one thread.)
    local place = own.interactive * load.interactiveTenants
    if job.interactive > 0 and place < load.interactive then
      inserted[#inserted + 1] = {lane, id, place - 1}
    else
      added[lane] = added[lane] or {}
      table.insert(added[lane], id)
    end
    counted[#counted + 1] = id
    counted[#counted + 1] = cmsgpack.pack(job.threads, job.bytes, job.interactive, caller.tenant, timeLeft < LATE)
  end
  outcomes[#outcomes + 1] = outcome or refusal or 'accepted'
end

if #counted > 0 then
  load.stamp = stamp - 1
  if isOfOther or not ceiling or ceiling - stamp < SPARE then
    ceiling = math.max(stamp, math.min(stamp + AHEAD, now + FARTHEST))
    redis.call('HSET', base .. 'load', 'ceiling', string.format('%.0f', ceiling), 'server', server)
  end
  redis.call('HSET', base .. 'load:jobs', unpack(counted))
  writeLoad(base, load)
end
for lane, ids in pairs(added) do addWaiting(lane, ids) end
for _, one in ipairs(inserted) do insertWaiting(unpack(one)) end
for id, bucket in pairs(buckets) do
  local fullAfter = math.ceil((bucket.burst - bucket.level) / bucket.perSecond * 1000) + 1000
  local packed = cmsgpack.pack(bucket.level, now)
  if bucket.isCharged then redis.call('SET', base .. 'bucket:' .. id, packed, 'PX', fullAfter) end
end
local loads = {}
for at, caller in ipairs(callers) do
  local own, bucket = caller.own, caller.bucket
  loads[at] = {own.threads, own.bytes, own.interactive, bucket and math.floor(bucket.level) or 0}
end
return {now, {load.threads, load.bytes, load.interactive, load.drained, load.drainedInteractive}, loads, outcomes}
