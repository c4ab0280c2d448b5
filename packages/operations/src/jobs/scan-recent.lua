-- Examines the next entries of the stream of completed jobs, newest first. Blocks Redis for about a
-- millisecond.
-- ARGV  1  the last entry that was examined ('+' at first)
--       2  the text as it stands in a JSON string
--       3  a number of jobs: the script ends after the entry in which this number of matching jobs
--          is reached
-- Returns the last entry that was examined ('' if none is left), and for each job whose line has
-- the text: id of the entry, line.
local ENTRIES_AT_ONCE, BYTES_AT_ONCE = 50, 524288
local after, text, most, found, bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), {}, 0
repeat
  local from = after == '+' and '+' or '(' .. after
  local entries = redis.call('XREVRANGE', KEYS[1] .. 'recent', from, '-', 'COUNT', ENTRIES_AT_ONCE)
  for _, entry in ipairs(entries) do
    local lines = entry[2][4]
    after, bytes = entry[1], bytes + #lines
    if string.find(lines, text, 1, true) then
      for line in string.gmatch(lines, '[^\n]+') do
        if string.find(line, text, 1, true) then found[#found + 1] = {after, line} end
      end
      if #found >= most then return {after, found} end
    end
  end
  if #entries < ENTRIES_AT_ONCE then after = '' end
until after == '' or bytes > BYTES_AT_ONCE
return {after, found}
