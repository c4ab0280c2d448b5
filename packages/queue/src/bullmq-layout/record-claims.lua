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
