#!lua flags=allow-oom
-- Reads failed jobs of one lane, newest first, and returns those that may match. The caller checks them exactly: a
-- needle may also occur in a text. One call examines a bounded number of jobs and bytes, so that Redis is never blocked
-- for more than a few milliseconds.
--
-- KEYS: the beginning of the lane's keys. ARGV: the latest and the earliest time of failure (ms), the job to go on
-- after (ms and id; '' for none), most jobs to return, a part of the reason in lower case, then texts that must all
-- occur in the job's data. Returns the last job that was examined (ms and id; '' for both if none is left), and the
-- fields of each job found.
local MOST_EXAMINED = 250
local MOST_BYTES = 1048576
local PAGE = 200
local lane, latest, earliest, afterAt, afterId = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local most, reason = tonumber(ARGV[5]), ARGV[6]
local function matches(data, failure)
  if reason ~= '' and not string.find(string.lower(failure), reason, 1, true) then return false end
  for i = 7, #ARGV do
    if not string.find(data, ARGV[i], 1, true) then return false end
  end
  return true
end
local found, examined, bytes, offset = {'', ''}, 0, 0, 0
while true do
  local page = redis.call('ZREVRANGEBYSCORE', lane .. 'failed', latest, earliest, 'WITHSCORES', 'LIMIT', offset, PAGE)
  for i = 1, #page, 2 do
    local id, at = page[i], page[i + 1]
    -- Jobs that failed in the same millisecond are in the descending order of their ids.
    if not (tonumber(at) == afterAt and id >= afterId) then
      if #found - 2 == most or examined == MOST_EXAMINED or bytes > MOST_BYTES then return found end
      found[1], found[2] = at, id
      examined = examined + 1
      local job = redis.call('HMGET', lane .. id, 'data', 'failedReason')
      if job[1] then
        bytes = bytes + #job[1]
        if matches(job[1], job[2] or '') then
          local others = redis.call('HMGET', lane .. id, 'name', 'timestamp', 'atm', 'stc', 'progress')
          found[#found + 1] = {id, at, job[1], job[2], unpack(others)}
        end
      end
    end
  end
  if #page < 2 * PAGE then
    found[1], found[2] = '', ''
    return found
  end
  offset = offset + PAGE
end
