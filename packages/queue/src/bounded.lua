-- A bounded store bounds the bytes of its members: above the bound, it evicts the oldest first. The
-- sorted sets `STORE:age` and `STORE:bytes` have each member's time (ms) and bytes, and the string
-- `STORE` has the sum of the bytes.
local function bytesIn(store)
  return tonumber(redis.call('GET', store) or 0)
end
local function addBytes(store, member, bytes)
  redis.call('ZINCRBY', store .. ':bytes', bytes, member)
  if redis.call('INCRBY', store, bytes) == 0 then redis.call('DEL', store) end
end
-- Adds a member, or changes its time and bytes.
local function keep(store, member, at, bytes)
  local before = redis.call('ZSCORE', store .. ':bytes', member)
  redis.call('ZADD', store .. ':age', at, member)
  addBytes(store, member, bytes - (before or 0))
end
-- Removes a member. Returns whether the store had it.
local function forget(store, member)
  local bytes = redis.call('ZSCORE', store .. ':bytes', member)
  if not bytes then return false end
  addBytes(store, member, -bytes)
  redis.call('ZREM', store .. ':bytes', member)
  redis.call('ZREM', store .. ':age', member)
  return true
end
-- Returns the oldest member and its time, or nothing.
local function oldestIn(store)
  local member, at = unpack(redis.call('ZRANGE', store .. ':age', 0, 0, 'WITHSCORES'))
  return member, tonumber(at)
end
-- Evicts members older than the time `expired`, then the oldest ones until the store is within
-- `bound`. Calls `onEvicted` with each member. Evicts at most `most`, because a call must not block
-- Redis for long. Returns 1 if more members must be evicted: then call the script again.
local function evict(store, bound, expired, most, onEvicted)
  for evicted = 0, most do
    local member, at = oldestIn(store)
    if not member or at >= expired and bytesIn(store) <= bound then return 0 end
    if evicted == most then return 1 end
    forget(store, member)
    onEvicted(member)
  end
end
-- Names the store of a tenant's own members, as `ownStore` in lanes.ts does. It escapes `%` and
-- `:`, because otherwise the store of a tenant `X:age` would have the name of a key of the tenant
-- X.
local function ownStore(store, tenant)
  return store .. ':of:' .. string.gsub(tenant, '[%%:]', {['%'] = '%25', [':'] = '%3A'})
end
-- A bounded store of tenants bounds the bytes of all tenants together. Each tenant's members are in
-- a bounded store `STORE:of:TENANT`. The members of `STORE` are the tenants, each with the time of
-- its oldest member and its sum of bytes. This function adds a member, changes it or, without
-- `bytes`, removes it.
local function keepOf(store, tenant, member, at, bytes)
  local own = ownStore(store, tenant)
  if bytes then keep(own, member, at, bytes) else forget(own, member) end
  local oldest, oldestAt = oldestIn(own)
  if oldest then keep(store, tenant, oldestAt, bytesIn(own)) else forget(store, tenant) end
end
-- Evicts as `evict` does, but above the bound it evicts the oldest member of the tenant with the
-- most bytes. It stops before a member in `new`, because the current call has added that one. Calls
-- `onEvicted` with each member, and with whether the member had expired.
local function evictOfTenants(store, bound, expired, most, onEvicted, new)
  for evicted = 0, most do
    local tenant, at = oldestIn(store)
    if not tenant then return 0 end
    if at >= expired then
      if bytesIn(store) <= bound then return 0 end
      tenant = redis.call('ZREVRANGE', store .. ':bytes', 0, 0)[1]
    end
    local member, memberAt = oldestIn(ownStore(store, tenant))
    if new and new[member] then return 0 end
    if evicted == most then return 1 end
    keepOf(store, tenant, member)
    onEvicted(member, memberAt < expired)
  end
end
