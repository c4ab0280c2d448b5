-- Counts the load of a queue: the jobs of both lanes that are accepted, and have neither completed
-- nor failed permanently. The hash `load` has the fields
--   all           threads, bytes, interactive threads, tenants with interactive threads, threads and interactive
--                 threads that ever left the load, and the last stamp
--   of:TENANT     threads, bytes and interactive threads of a tenant
--   failed:LANE   threads that a lane's failed jobs could not store, as a text; LANE is the prefix of its keys
--   ceiling       a time above all stamps, as a text: see enqueue.lua
--   server        the server that wrote `ceiling`
-- The hash `load:jobs` has what each job adds, by its id, so that each job counts once. For a
-- failed job, its own field `load` has them instead. The values:
--   1-3  threads, bytes, interactive threads
--   4    tenant
--   5    whether the result must be retained
--   6    of a failed job: its threads in `failed:LANE`
--   7    the stamp of the last deletion that changed its payload
-- Values are packed (MessagePack) unless they are called a text here, because converting numbers to
-- texts took a third of a script's time.
local function readLoad(base, tenants)
  local fields = {'all'}
  for at = 1, #tenants do fields[at + 1] = 'of:' .. tenants[at] end
  local values = redis.call('HMGET', base .. 'load', unpack(fields))
  local load = {
    threads = 0, bytes = 0, interactive = 0, interactiveTenants = 0,
    drained = 0, drainedInteractive = 0, stamp = 0, tenants = {},
  }
  if values[1] then
    load.threads, load.bytes, load.interactive, load.interactiveTenants,
      load.drained, load.drainedInteractive, load.stamp = cmsgpack.unpack(values[1])
  end
  for at = 1, #tenants do
    local own = {threads = 0, bytes = 0, interactive = 0, field = fields[at + 1]}
    if values[at + 1] then own.threads, own.bytes, own.interactive = cmsgpack.unpack(values[at + 1]) end
    load.tenants[tenants[at]] = own
  end
  return load
end
local function packLoad(load)
  local values = {'all', cmsgpack.pack(
    load.threads, load.bytes, load.interactive, load.interactiveTenants,
    load.drained, load.drainedInteractive, load.stamp)}
  for _, own in pairs(load.tenants) do
    local last = #values
    values[last + 1], values[last + 2] = own.field, cmsgpack.pack(own.threads, own.bytes, own.interactive)
  end
  return values
end
local function writeLoad(base, load)
  redis.call('HSET', base .. 'load', unpack(packLoad(load)))
end
local function count(load, job, sign)
  local own = load.tenants[job.tenant]
  load.threads, own.threads = load.threads + sign * job.threads, own.threads + sign * job.threads
  load.bytes, own.bytes = load.bytes + sign * job.bytes, own.bytes + sign * job.bytes
  local hadInteractive = own.interactive > 0
  load.interactive = load.interactive + sign * job.interactive
  own.interactive = own.interactive + sign * job.interactive
  if hadInteractive ~= (own.interactive > 0) then load.interactiveTenants = load.interactiveTenants + sign end
end
--part release
-- Removes jobs from the load.
--include load.lua
local function read(packed)
  local threads, bytes, interactive, tenant, isRetained, failed, purged = cmsgpack.unpack(packed)
  local job = {threads = threads, bytes = bytes, interactive = interactive, tenant = tenant, isRetained = isRetained}
  job.failed, job.purged = failed, purged
  return job
end
local function pack(job)
  return cmsgpack.pack(job.threads, job.bytes, job.interactive, job.tenant, job.isRetained, job.failed, job.purged)
end
-- Returns whether a counted job was purged after a worker fetched it, with the stamp `purged`. What
-- the worker writes about the job may have words that were deleted.
local function isStale(counted, purged)
  return counted and (counted.purged or 0) > (purged or 0)
end
-- Returns how many threads of a failed job failed, from its field `failedThreads`. Returns `all` if
-- the field is absent.
local function failedOf(failedThreads, all)
  return tonumber(string.match(failedThreads or '', '"count":(%d+)') or all)
end
-- Returns what each of these jobs adds to the load, by id.
local function countedJobs(base, ids)
  local packed, jobs = redis.call('HMGET', base .. 'load:jobs', unpack(ids)), {}
  for at = 1, #ids do
    if packed[at] then jobs[ids[at]] = read(packed[at]) end
  end
  return jobs
end
local function release(base, jobs)
  local ids, tenants, isListed = {}, {}, {}
  for id, job in pairs(jobs) do
    ids[#ids + 1] = id
    if not isListed[job.tenant] then tenants[#tenants + 1], isListed[job.tenant] = job.tenant, true end
  end
  if #ids == 0 then return end
  redis.call('HDEL', base .. 'load:jobs', unpack(ids))
  local load = readLoad(base, tenants)
  for _, job in pairs(jobs) do
    count(load, job, -1)
    load.drained = load.drained + job.threads
    load.drainedInteractive = load.drainedInteractive + job.interactive
  end
  writeLoad(base, load)
end
--part tenants
-- Finds tenants with threads in the load.
-- ARGV  cursor, number of fields to look at
-- Returns the next cursor, and tenant and threads of each.
local cursor, fields = unpack(redis.call('HSCAN', KEYS[1] .. 'load', ARGV[1], 'MATCH', 'of:*', 'COUNT', ARGV[2]))
local found = {}
for at = 1, #fields, 2 do
  local threads = cmsgpack.unpack(fields[at + 1])
  if threads > 0 then found[#found + 1] = {string.sub(fields[at], 4), threads} end
end
return {cursor, found}
--part tenant
-- Returns threads, bytes and interactive threads that a tenant has in the load.
-- ARGV  tenant
--include load.lua
local own = readLoad(KEYS[1], {ARGV[1]}).tenants[ARGV[1]]
return {own.threads, own.bytes, own.interactive}
--part failed
-- Changes the load when jobs fail permanently and when they are retried. The field `load` of a
-- failed job has what the job added to the load. The field always says that the result must be
-- retained: by then, the caller has the job's id.
--include load.lua#release
local function packRetained(job, failed)
  job.isRetained, job.failed = true, failed
  return pack(job)
end
local function countFailed(base, lane, threads)
  redis.call('HINCRBY', base .. 'load', 'failed:' .. lane, threads)
end
local function releaseFailed(base, lane, id)
  local counted = countedJobs(base, {id})
  if not counted[id] then return end
  local failed = failedOf(redis.call('HGET', lane .. id, 'failedThreads'), counted[id].threads)
  redis.call('HSET', lane .. id, 'load', packRetained(counted[id], failed))
  countFailed(base, lane, failed)
  release(base, counted)
end
-- Stops counting the threads of a failed job, because it is retried or removed. Returns (packed)
-- what the job adds to the load if it is retried.
local function uncountFailed(base, lane, id)
  local packed = redis.call('HGET', lane .. id, 'load')
  if not packed then return end
  redis.call('HDEL', lane .. id, 'load')
  countFailed(base, lane, -read(packed).failed)
  return packed
end
local function countAgain(base, lane, id)
  local packed = uncountFailed(base, lane, id)
  if not packed then return end
  redis.call('HSET', base .. 'load:jobs', id, packed)
  local counted = read(packed)
  local load = readLoad(base, {counted.tenant})
  count(load, counted, 1)
  writeLoad(base, load)
end
--part audit
-- Removes from the load the jobs that BullMQ's own tools removed from the queue. After the last
-- job, lets jobs that are in no list wait again and, if there are few jobs, compares the totals with
-- them and corrects the totals: another version of the scripts may have counted differently.
-- ARGV  1    cursor
--       2    number of jobs to look at
--       3 …  prefixes of both lanes' keys
-- Returns the next cursor and, after the last job, `right`, `corrected`, `relisted` if jobs were in
-- no list and wait again, or `many` if the totals were not compared.
--include load.lua#release
--include ../bullmq-layout/jobs.lua#states
--include ../bullmq-layout/jobs.lua#unlisted
local base = KEYS[1]
local cursor, found = unpack(redis.call('HSCAN', base .. 'load:jobs', ARGV[1], 'COUNT', ARGV[2]))
local gone = {}
for at = 1, #found, 2 do
  local id, isThere = found[at], false
  for lane = 3, #ARGV do isThere = isThere or jobExists(ARGV[lane], id) end
  if not isThere then gone[id] = read(found[at + 1]) end
end
release(base, gone)
-- If a lane has no failed job, it has no failed threads. BullMQ's own tools may have removed the
-- failed jobs.
for lane = 3, #ARGV do
  local field = 'failed:' .. ARGV[lane]
  local isCounted = redis.call('HEXISTS', base .. 'load', field) == 1
  if isCounted and not hasFailed(ARGV[lane]) then redis.call('HDEL', base .. 'load', field) end
end
-- Summing this number of jobs, of a hundred tenants, takes 1.5 ms.
local MOST_SUMMED = 1000
if cursor ~= '0' then return {cursor, ''} end
local unlisted = redis.call('HLEN', base .. 'load:jobs')
for lane = 3, #ARGV do
  local counts = countJobs(ARGV[lane])
  unlisted = unlisted - counts.waiting - counts.delayed - counts.active
end
if unlisted > 0 and listAgain({unpack(ARGV, 3)}, redis.call('HKEYS', base .. 'load:jobs')) > 0 then
  return {cursor, 'relisted'}
end
local most = math.max(redis.call('HLEN', base .. 'load:jobs'), redis.call('HLEN', base .. 'load'))
if most > MOST_SUMMED then return {cursor, 'many'} end
local jobs, names, tenants = {}, {}, {}
for at, packed in ipairs(redis.call('HVALS', base .. 'load:jobs')) do
  jobs[at] = read(packed)
  names['of:' .. jobs[at].tenant] = true
end
for _, field in ipairs(redis.call('HKEYS', base .. 'load')) do names[field] = true end
for field in pairs(names) do
  if string.sub(field, 1, 3) == 'of:' then tenants[#tenants + 1] = string.sub(field, 4) end
end
local load = readLoad(base, tenants)
local before = table.concat(packLoad(load))
load.threads, load.bytes, load.interactive, load.interactiveTenants = 0, 0, 0, 0
for _, own in pairs(load.tenants) do own.threads, own.bytes, own.interactive = 0, 0, 0 end
for _, job in ipairs(jobs) do count(load, job, 1) end
if table.concat(packLoad(load)) == before then return {cursor, 'right'} end
writeLoad(base, load)
return {cursor, 'corrected'}
