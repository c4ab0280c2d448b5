-- The jobs that completed last. The stream `recent` has an entry for each call that completed jobs: their number, and a
-- line about each. `recent:bytes` counts its bytes, because a stream can only be trimmed by its number of entries.
--part append
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
--part search
#!lua flags=allow-oom
-- Examines the next entries, newest first.
-- ARGV  1  the search's token
--       2  the last entry that was examined ('+' at first)
--       3  the text as it stands in a JSON string
-- Returns `busy` if another search has the lease, else
--       1  the last entry that was examined ('' if none is left)
--       2  number of jobs examined
--       3  for each job whose line has the text: id of the entry, line
--include search-lease.lua
local ENTRIES_AT_ONCE, BYTES_AT_ONCE = 50, 524288
local base, token, after, json = KEYS[1], unpack(ARGV)
if not renewSearch(base, token) then return 'busy' end
local found, examined, bytes = {}, 0, 0
repeat
  local from = after == '+' and '+' or '(' .. after
  local entries = redis.call('XREVRANGE', base .. 'recent', from, '-', 'COUNT', ENTRIES_AT_ONCE)
  for _, entry in ipairs(entries) do
    local id, count, lines = entry[1], entry[2][2], entry[2][4]
    after, examined, bytes = id, examined + count, bytes + #lines
    if string.find(lines, json, 1, true) then
      for line in string.gmatch(lines, '[^\n]+') do
        if string.find(line, json, 1, true) then found[#found + 1] = {id, line} end
      end
    end
  end
  if #entries < ENTRIES_AT_ONCE then after = '' end
until after == '' or bytes > BYTES_AT_ONCE
return {after, examined, found}
