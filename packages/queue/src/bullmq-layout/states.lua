-- Looks at jobs as BullMQ keeps them. `lane` is the beginning of a lane's keys.
local function jobKey(lane, id)
  return lane .. id
end
local function jobExists(lane, id)
  return redis.call('EXISTS', lane .. id) == 1
end
local function isFailed(lane, id)
  return redis.call('ZSCORE', lane .. 'failed', id) ~= false
end
