-- Examines the next waiting, delayed or active jobs of a lane, and returns those that match. Blocks
-- Redis for about a millisecond.
-- ARGV  1  a JSON object: prefix of the lane's keys, state, from (the place to begin at), most (jobs to return), tenant,
--          service and text (a part of the name); '' for any
-- Returns the place to continue at (-1 if no job is left), and for each job found: id, tenant,
-- threads, name, time of enqueueing (ms), attempts, reason of the last failed attempt.
--include @sluice/queue/load/load.lua#release
--include @sluice/queue/bullmq-layout/jobs.lua#inspect
local EXAMINED = 500
local input = cjson.decode(ARGV[1])
local lane, service, text = input.lane, input.service, string.lower(input.text)
local ids, place = idsOf(lane, input.state, input.from, EXAMINED), input.from
local counted, found = #ids > 0 and countedJobs(KEYS[1], ids) or {}, {-1}
-- Returns whether a name matches. The name of a job has only its first and its last thread, so a
-- filter can't find the threads between.
local function isOf(name)
  if service ~= '' and string.sub(name, 1, #service) ~= service and not string.find(name, ' … ' .. service, 1, true) then
    return false
  end
  return text == '' or string.find(string.lower(name), text, 1, true)
end
for _, id in ipairs(ids) do
  if #found > input.most then break end
  place = place + 1
  local load = counted[id]
  -- A job that is not in the load has just completed.
  if load and (input.tenant == '' or load.tenant == input.tenant) then
    local job = outlineOf(lane, id)
    if job and (isOf(job[1]) or id == input.text) then
      found[#found + 1] = {id, load.tenant, load.threads, unpack(job)}
    end
  end
end
if place < input.from + #ids or #ids == EXAMINED then found[1] = place end
return found
