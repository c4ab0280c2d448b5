-- A bounded store bounds the bytes of its members. At the bound, the oldest are evicted first. The
-- sorted sets `STORE:age` and `STORE:bytes` have each member's time (ms) and bytes, and `STORE` has
-- the bytes of all.
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
-- Evicts members older than the time `expired`, and the oldest ones above the bound. `onEvicted`
-- gets each. Evicts at most `most`, because a call must not block Redis for long. Returns 1 if more
-- may have to go: then call the script again.
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
-- A bounded store of tenants bounds the bytes of all tenants together. `STORE:of:TENANT` is a
-- bounded store of one tenant's members. The members of `STORE` are the tenants, each with its
-- oldest member's time and its bytes. This function adds or changes a member. Without `bytes`, it
-- removes the member.
local function keepOf(store, tenant, member, at, bytes)
  local own = ownStore(store, tenant)
  if bytes then keep(own, member, at, bytes) else forget(own, member) end
  local oldest, oldestAt = oldestIn(own)
  if oldest then keep(store, tenant, oldestAt, bytesIn(own)) else forget(store, tenant) end
end
-- Evicts as `evict` does, but above the bound it evicts the oldest member of the tenant with the
-- most bytes. It stops before a member of `new`: this call has added those. `onEvicted` gets each
-- member, and whether it has expired.
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
