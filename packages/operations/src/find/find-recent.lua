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
