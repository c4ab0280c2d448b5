-- The lease lets one search at a time run, over all processes, so that searches never add up in Redis. The lease ends
-- with the search, or LEASE_MS after its last call.
local LEASE_MS = 2000
local function renewSearch(base, token)
  local key = base .. 'search'
  local holder = redis.call('GET', key)
  if holder and holder ~= token then return false end
  redis.call('SET', key, token, 'PX', LEASE_MS)
  return true
end
--part release
#!lua flags=allow-oom
-- Ends a search's lease. ARGV: its token.
if redis.call('GET', KEYS[1] .. 'search') == ARGV[1] then redis.call('DEL', KEYS[1] .. 'search') end
return 1
