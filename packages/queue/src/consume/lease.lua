-- A lane's lease. The worker whose fetch got several jobs leases the lane: it fetches the next jobs as well, so that they gather while it is busy, because a small
-- batch costs nearly as much as a large one. Other workers leave the jobs until enough of them wait, or until the lease ends. The lease ends LEASE_MS after that
-- fetch, whatever becomes of the worker, so no job waits longer than that for a worker that is slow, paused or dead.
local LEASE_MS = 25

local holder
local function isLeasedToAnother(lease, worker)
  holder = redis.call('GET', lease)
  return holder and holder ~= worker
end

-- Returns after how many ms the worker must look again at the jobs that it leaves: 0 if another worker does.
local function whenToLook(lease, worker)
  local looker = redis.call('GET', lease .. ':looker')
  if looker and looker ~= worker then return 0 end
  local ms = math.max(redis.call('PTTL', lease), 1)
  redis.call('SET', lease .. ':looker', worker, 'PX', ms)
  return ms
end

-- @param count how many jobs the worker has just fetched
local function leaseAfterFetch(lease, worker, count)
  if count > 1 then
    redis.call('SET', lease, worker, 'PX', LEASE_MS)
  elseif holder == worker then
    redis.call('DEL', lease)
  end
end
