-- Claims: the job that an Idempotency-Key of a tenant stands for. The scripts that change claims include this file.
--
-- The hash `claim:NAME` has the `tenant`, the `job`, the beginning of its `lane`'s keys, the request's `fingerprint` and, once the job is done, its
-- `result`. It expires. `claims:of:TENANT` has the tenant's claims (NAME/bytes) by their time, `claims:oldest` each tenant by the time of its oldest claim,
-- `claims:bytes` each tenant by the bytes of its claims, and `bytes:claims` the bytes of all. Beyond the bound, the tenant with the most bytes loses its
-- oldest claim, so that no tenant's flood evicts another tenant's claims.
local CLAIM_BYTES = 800 -- Redis's own cost of a claim without its result: the hash, its time to live, and its place in the index.
local function memberOf(name, resultBytes)
  return name .. '/' .. CLAIM_BYTES + resultBytes
end
local function countClaimBytes(base, tenant, bytes)
  redis.call('INCRBY', base .. 'bytes:claims', bytes)
  local left = tonumber(redis.call('ZINCRBY', base .. 'claims:bytes', bytes, tenant))
  if left <= 0 then redis.call('ZREM', base .. 'claims:bytes', tenant) end
end
local function noteOldestClaim(base, tenant)
  local oldest = redis.call('ZRANGE', base .. 'claims:of:' .. tenant, 0, 0, 'WITHSCORES')
  if oldest[2] then redis.call('ZADD', base .. 'claims:oldest', oldest[2], tenant)
  else redis.call('ZREM', base .. 'claims:oldest', tenant) end
end
-- The name of an expired claim may be claimed anew, so only a claim that is evicted early is deleted.
local function dropOldestClaim(base, tenant, expired)
  local index = base .. 'claims:of:' .. tenant
  local oldest = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
  if not oldest[1] then
    redis.call('ZREM', base .. 'claims:bytes', tenant)
    return noteOldestClaim(base, tenant)
  end
  local name, bytes = string.match(oldest[1], '^(.*)/(%d+)$')
  redis.call('ZREM', index, oldest[1])
  if tonumber(oldest[2]) > expired then redis.call('UNLINK', base .. 'claim:' .. name) end
  countClaimBytes(base, tenant, -bytes)
  noteOldestClaim(base, tenant)
end
-- Drops expired claims, and the oldest ones beyond the bound. Drops only so many, because a call must not block Redis for long, and returns whether more
-- must be dropped.
local function boundClaims(base, now, bounds, most)
  local expired = now - bounds.ms
  for _ = 1, most do
    local oldest = redis.call('ZRANGE', base .. 'claims:oldest', 0, 0, 'WITHSCORES')
    if not oldest[1] then return false end
    if tonumber(oldest[2]) <= expired then dropOldestClaim(base, oldest[1], expired)
    elseif tonumber(redis.call('GET', base .. 'bytes:claims')) > bounds.bytes then
      dropOldestClaim(base, redis.call('ZREVRANGE', base .. 'claims:bytes', 0, 0)[1], expired)
    else return false end
  end
  return true
end
-- Returns the word for a job whose key is claimed: `claimed JOB`, or `reused` if it was claimed for another request. A claim is void if its job can't give
-- a result any more: it failed for good, or was removed.
local function wordOfClaim(base, claim)
  local key = base .. 'claim:' .. claim.name
  local job, lane, fingerprint = unpack(redis.call('HMGET', key, 'job', 'lane', 'fingerprint'))
  if not job then return end
  local isStored = redis.call('HEXISTS', key, 'result') == 1
  if not isStored and (redis.call('EXISTS', lane .. job) == 0 or redis.call('ZSCORE', lane .. 'failed', job)) then return end
  return fingerprint == claim.fingerprint and 'claimed ' .. job or 'reused'
end
local function addClaim(base, now, bounds, claim, tenant, lane, job)
  local key, index = base .. 'claim:' .. claim.name, base .. 'claims:of:' .. tenant
  local void = memberOf(claim.name, 0)
  if redis.call('ZREM', index, void) == 1 then countClaimBytes(base, tenant, -CLAIM_BYTES) end
  redis.call('HSET', key, 'tenant', tenant, 'job', job, 'lane', lane, 'fingerprint', claim.fingerprint)
  redis.call('PEXPIRE', key, bounds.ms)
  redis.call('ZADD', index, now, void)
  countClaimBytes(base, tenant, CLAIM_BYTES)
  noteOldestClaim(base, tenant)
  boundClaims(base, now, bounds, 20)
end
--part record
#!lua flags=allow-oom
-- Stores the results of jobs in their claims, so that a request that is sent again gets the same answer. A claim that was evicted, or that stands for
-- another job by now, stays as it is. Runs although Redis is full, because the jobs could not complete otherwise.
--
-- KEYS: the queue's base. ARGV: ms to keep a claim, the bytes bound of all claims, then for each job: claim, job id, result. Returns 1 if more claims must be
-- evicted: then call it again without jobs.
--include claims.lua
local EVICTED_AT_ONCE = 200
local base, bounds = KEYS[1], {ms = tonumber(ARGV[1]), bytes = tonumber(ARGV[2])}
local time = redis.call('TIME')
local function record(name, job, result)
  local key = base .. 'claim:' .. name
  local claimedBy, tenant = unpack(redis.call('HMGET', key, 'job', 'tenant'))
  if claimedBy ~= job then return end
  local index, bytesBefore = base .. 'claims:of:' .. tenant, redis.call('HSTRLEN', key, 'result')
  local before = memberOf(name, bytesBefore)
  local claimedAt = redis.call('ZSCORE', index, before)
  if not claimedAt then return end
  redis.call('ZADD', index, claimedAt, memberOf(name, #result))
  if #result ~= bytesBefore then redis.call('ZREM', index, before) end
  redis.call('HSET', key, 'result', result)
  countClaimBytes(base, tenant, #result - bytesBefore)
end
for at = 3, #ARGV, 3 do record(ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
local more = boundClaims(base, time[1] * 1000 + math.floor(time[2] / 1000), bounds, EVICTED_AT_ONCE)
return more and 1 or 0
