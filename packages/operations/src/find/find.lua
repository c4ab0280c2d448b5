-- Look-ups over many jobs, in steps, so that one step blocks Redis for less than a millisecond. The caller compares
-- exactly what a step returns.
--part names
#!lua flags=allow-oom
-- Examines the next jobs that count as load.
-- ARGV  1  cursor
--       2  the text
-- Returns the next cursor, and id and name of each job whose entry has the text.
--include @sluice/queue/load/load.lua#release
local JOBS_AT_ONCE = 500
local cursor, jobs = unpack(redis.call('HSCAN', KEYS[1] .. 'load:jobs', ARGV[1], 'COUNT', JOBS_AT_ONCE))
local found = {}
for at = 1, #jobs, 2 do
  if string.find(jobs[at + 1], ARGV[2], 1, true) then found[#found + 1] = {jobs[at], read(jobs[at + 1]).name} end
end
return {cursor, found}
--part recent
#!lua flags=allow-oom
-- Examines the next entries of the completed jobs, newest first.
-- ARGV  1  the last entry that was examined ('+' at first)
--       2  the text as it stands in a JSON string
-- Returns the last entry that was examined ('' if none is left), and for each job whose line has the text: id of the
-- entry, line.
local ENTRIES_AT_ONCE, BYTES_AT_ONCE = 50, 524288
local after, text, found, bytes = ARGV[1], ARGV[2], {}, 0
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
    end
  end
  if #entries < ENTRIES_AT_ONCE then after = '' end
until after == '' or bytes > BYTES_AT_ONCE
return {after, found}
