-- Returns the result of each job, or '' if it has none yet. KEYS: the queue's base. ARGV: job ids.
local found = {}
for i, id in ipairs(ARGV) do
  found[i] = redis.call('GET', KEYS[1] .. 'result:' .. id) or redis.call('HGET', KEYS[1] .. 'retained:' .. id, 'result') or ''
end
return found
