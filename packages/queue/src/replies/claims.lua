-- A claim says for which job a tenant has used an Idempotency-Key. A claim is a hash `claim:NAME`,
-- which expires. Its fields are `tenant`, `job`, `lane` (the prefix of the lane's keys), the
-- request's `fingerprint`, once the job is done `result`, and `purged` (see load.lua). Claims are
-- members of `claims`, a bounded store of tenants.
--include ../bounded.lua
--include ../bullmq-layout/jobs.lua#states
local CLAIM_BYTES = 1100 -- Redis's own cost of a claim without its result, on Redis 6.2. Later ones need less.
-- Evicts at most `most` claims that have expired or are above the bound. Returns 1 if more must be
-- evicted.
local function boundClaims(base, now, bounds, most)
  return evictOfTenants(base .. 'claims', bounds.bytes, now - bounds.ms, most, function(name, hasExpired)
    -- An expired claim's hash has expired as well. If a hash exists, a newer claim uses the name.
    if not hasExpired then redis.call('UNLINK', base .. 'claim:' .. name) end
  end)
end
-- Returns the outcome for a job whose Idempotency-Key is claimed: `claimed` with the earlier job's
-- id, or `reused` if the key was used with another request. Returns nothing if the claim is void:
-- it has no result, and its job failed permanently or was removed.
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
  keepOf(base .. 'claims', tenant, claim.name, now, CLAIM_BYTES)
  boundClaims(base, now, bounds, 20)
end
--part record
#!lua flags=allow-oom
-- Stores the results of jobs in their claims. Runs in a full Redis, too, because the jobs could not
-- complete otherwise. Skips claims that were evicted, or that another job has taken since.
-- ARGV  1    ms to keep a claim
--       2    bytes bound of all claims
--       3 …  for each job: claim, job id, result, purged
-- Returns 1 if more claims must be evicted: then call it again without jobs.
--include claims.lua
--include ../purge/purge.lua#words
local EVICTED_AT_ONCE = 200
local base, bounds = KEYS[1], {ms = tonumber(ARGV[1]), bytes = tonumber(ARGV[2])}
local time = redis.call('TIME')
for at = 3, #ARGV, 4 do
  local name, job, result, fetched = unpack(ARGV, at, at + 3)
  local claimedBy, tenant, purged = unpack(redis.call('HMGET', base .. 'claim:' .. name, 'job', 'tenant', 'purged'))
  if tonumber(purged or 0) > tonumber(fetched) then result = withoutWords(result) end
  local claimedAt = claimedBy == job and redis.call('ZSCORE', ownStore(base .. 'claims', tenant) .. ':age', name)
  if claimedAt then
    redis.call('HSET', base .. 'claim:' .. name, 'result', result)
    keepOf(base .. 'claims', tenant, name, claimedAt, CLAIM_BYTES + #result)
  end
end
return boundClaims(base, time[1] * 1000 + math.floor(time[2] / 1000), bounds, EVICTED_AT_ONCE)
--part finish
-- Stores the result of a job in its claim as the job completes. The part `record` has usually done
-- so already, but a failover may have lost that write. Without a result and without its job, the
-- claim would be void. The claim's bytes do not include this result.
local function finishClaim(base, name, job, result)
  local key = base .. 'claim:' .. name
  local claimedBy, stored = unpack(redis.call('HMGET', key, 'job', 'result'))
  if claimedBy == job and not stored then redis.call('HSET', key, 'result', result) end
end
