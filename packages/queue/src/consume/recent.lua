-- The jobs that completed last. The stream `recent` has an entry for each call that completed jobs: their number, and a
-- line about each. `recent:bytes` counts its bytes, because a stream can only be trimmed by its number of entries.
local ENTRY_BYTES = 50 -- Redis's own cost of an entry.
local function appendRecent(base, lines, bound)
  local key, counter = base .. 'recent', base .. 'recent:bytes'
  local text = table.concat(lines, '\n')
  redis.call('XADD', key, '*', 'count', #lines, 'jobs', text)
  local bytes = redis.call('INCRBY', counter, #text + ENTRY_BYTES)
  -- May remove more entries than the one that was added, so that a lowered bound is reached step by step.
  for _ = 1, 10 do
    local oldest = bytes > bound and redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
    if not oldest then return end
    redis.call('XDEL', key, oldest[1])
    bytes = redis.call('DECRBY', counter, #oldest[2][4] + ENTRY_BYTES)
  end
end
