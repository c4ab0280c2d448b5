#!lua flags=allow-oom
-- Removes some of a tenant's claims, retained results and imports.
-- ARGV  tenant
-- Returns 1 if more are left.
--include bounded.lua
--include imports/write-import.lua
local AT_ONCE = 200
local base, tenant, more = KEYS[1], ARGV[1], 0
local function forgetIn(store, remove)
  local members = redis.call('ZRANGE', ownStore(base .. store, tenant) .. ':age', 0, AT_ONCE - 1)
  for _, member in ipairs(members) do
    remove(member)
    keepOf(base .. store, tenant, member)
  end
  if #members == AT_ONCE then more = 1 end
end
forgetIn('claims', function(name) redis.call('UNLINK', base .. 'claim:' .. name) end)
forgetIn('retained', function(id) redis.call('UNLINK', base .. 'retained:' .. id) end)
forgetIn('imports', function(id) redis.call('UNLINK', keysOf(base, id)) end)
return more
