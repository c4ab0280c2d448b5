-- Claims: the job that an Idempotency-Key of a tenant stands for. Needs `bounded.lua` and BullMQ's `states`. The hash
-- `claim:NAME` has the `tenant`, the `job`, the beginning of its `lane`'s keys, the request's `fingerprint` and, once
-- the job is done, its `result`. It expires. The bounded store `claims:of:TENANT` has the tenant's claims, and the
-- bounded store `claims` the tenants, each with the time of its oldest claim. Beyond the bound, the tenant with the
-- most bytes loses its oldest claim, so that no tenant's flood evicts another tenant's claims. Redis's own cost of a
-- claim without its result: the hash, its time to live, and its entries in the store. Measured on Redis 6.2; Redis 7.0
-- needs a tenth less, and Valkey 9 a quarter.
local CLAIM_BYTES = 1100
local function setClaim(base, tenant, name, at, bytes)
  local claims = base .. 'claims:of:' .. tenant
  if bytes then keep(claims, name, at, bytes) else forget(claims, name) end
  local oldest, oldestAt = oldestIn(claims)
  if oldest then keep(base .. 'claims', tenant, oldestAt, bytesIn(claims)) else forget(base .. 'claims', tenant) end
end
-- Drops expired claims, and the oldest ones beyond the bound, at most `most`: a call must not block Redis for long.
-- Returns 1 if more must be dropped.
local function boundClaims(base, now, bounds, most)
  local expired = now - bounds.ms
  for _ = 1, most do
    local tenant, at = oldestIn(base .. 'claims')
    if not tenant then return 0 end
    if at > expired then
      if bytesIn(base .. 'claims') <= bounds.bytes then return 0 end
      tenant = redis.call('ZREVRANGE', base .. 'claims:bytes', 0, 0)[1]
    end
    local name, claimedAt = oldestIn(base .. 'claims:of:' .. tenant)
    -- The name of an expired claim may be claimed anew, so only a claim that is evicted early is deleted.
    if claimedAt > expired then redis.call('UNLINK', base .. 'claim:' .. name) end
    setClaim(base, tenant, name)
  end
  return 1
end
-- Returns the outcome for a job whose key is claimed: `claimed` with the earlier job's id, or `reused` if it was
-- claimed for another request. A claim is void if its job can't have a result any more: it failed for good, or was
-- removed.
local function claimedOutcome(base, claim)
  local key = base .. 'claim:' .. claim.name
  local job, lane, fingerprint = unpack(redis.call('HMGET', key, 'job', 'lane', 'fingerprint'))
  if not job then return end
  local isStored = redis.call('HEXISTS', key, 'result') == 1
  if not isStored and (not jobExists(lane, job) or isFailed(lane, job)) then return end
  return fingerprint == claim.fingerprint and {'claimed', job} or 'reused'
end
local function addClaim(base, now, bounds, claim, tenant, lane, job)
  local key = base .. 'claim:' .. claim.name
  redis.call('HSET', key, 'tenant', tenant, 'job', job, 'lane', lane, 'fingerprint', claim.fingerprint)
  redis.call('PEXPIRE', key, bounds.ms)
  setClaim(base, tenant, claim.name, now, CLAIM_BYTES)
  boundClaims(base, now, bounds, 20)
end
--part record
#!lua flags=allow-oom
-- Stores the results of jobs in their claims. A claim that was evicted, or that stands for another job by now, stays as
-- it is. Runs although Redis is full, because the jobs could not complete otherwise.
-- ARGV: ms to keep a claim, the bytes bound of all claims, then for each job: claim, job id, result. Returns 1 if more
-- claims must be evicted: then call it again without jobs.
--include ../bounded.lua
--include ../bullmq-layout/jobs.lua#states
--include claims.lua
local EVICTED_AT_ONCE = 200
local base, bounds = KEYS[1], {ms = tonumber(ARGV[1]), bytes = tonumber(ARGV[2])}
local time = redis.call('TIME')
for at = 3, #ARGV, 3 do
  local name, job, result = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local claimedBy, tenant = unpack(redis.call('HMGET', base .. 'claim:' .. name, 'job', 'tenant'))
  local claimedAt = claimedBy == job and redis.call('ZSCORE', base .. 'claims:of:' .. tenant .. ':age', name)
  if claimedAt then
    redis.call('HSET', base .. 'claim:' .. name, 'result', result)
    setClaim(base, tenant, name, claimedAt, CLAIM_BYTES + #result)
  end
end
return boundClaims(base, time[1] * 1000 + math.floor(time[2] / 1000), bounds, EVICTED_AT_ONCE)
