-- Records the layout that a process writes, unless a higher one is recorded. Returns the recorded
-- layout.
-- KEYS  1  the queue's base
-- ARGV  1  the layout that the process writes
local key = KEYS[1] .. 'layout'
local noted = tonumber(redis.call('GET', key) or 0)
if noted >= tonumber(ARGV[1]) then return noted end
redis.call('SET', key, ARGV[1])
return tonumber(ARGV[1])
