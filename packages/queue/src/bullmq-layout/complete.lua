-- Stores the results of jobs, replies them to the replicas that wait, and removes the jobs that succeeded from the queue, in one step. The removal is
-- that of BullMQ's own script with `removeOnComplete`, without events. A job whose lock belongs to another worker stays: it was counted as stalled.
-- A failed job stays as well: BullMQ keeps it.
--
-- Retained results (with the request, copied from BullMQ's job) and transient ones share a bound in bytes. Beyond it, the oldest are evicted first, the
-- transient ones before the retained ones.
--
-- KEYS: the queue's base. ARGV: now (ms), ms to keep retained results, ms to keep transient ones, their bytes bound, then for each job: id, the beginning
-- of its lane's keys, token, kind (retained, failed or ''), attempts, reply stream, result.
--include load.lua
local ENTRY_BYTES = 65536 -- An entry of a reply stream is closed beyond so many bytes.
local ENTRIES_KEPT = 2000 -- A replica that is far behind looks results up, so its stream may be cut.
local REPLY_BYTES = 16384 -- Of a larger result the stream has the job's id only; the replica looks it up.
local REPLIES_KEPT_MS = 600000 -- A stream without new entries for so long belongs to a replica that is gone.
local base, now = KEYS[1], tonumber(ARGV[1])
local function evict(index, kind, upTo, room)
  while true do
    local oldest = redis.call('ZRANGE', base .. index, 0, 0, 'WITHSCORES')
    if not oldest[1] then return end
    local total = tonumber(redis.call('GET', base .. 'result-bytes') or '0')
    local expired = tonumber(oldest[2]) < upTo
    if not expired and total <= room then return end
    redis.call('ZREM', base .. index, oldest[1])
    local id, bytes = string.match(oldest[1], '^(.*)/(%d+)$')
    redis.call('DECRBY', base .. 'result-bytes', bytes)
    if not expired then redis.call('DEL', base .. kind .. id) end
  end
end
local function forgetFailure(id)
  if redis.call('ZREM', base .. 'failures', id) == 0 then return end
  redis.call('DECRBY', base .. 'failure-bytes', redis.call('HGET', base .. 'failure-sizes', id))
  redis.call('HDEL', base .. 'failure-sizes', id)
end
local function retain(id, job, result, attempts)
  local key = base .. 'retained:' .. id
  local data = redis.call('HGET', job, 'data') or redis.call('HGET', key, 'data') or ''
  redis.call('DEL', base .. 'retain:' .. id, base .. 'result:' .. id)
  local new = redis.call('HSET', key, 'result', result, 'data', data, 'at', now, 'attempts', attempts)
  redis.call('PEXPIRE', key, ARGV[2])
  return #data, new == 0
end
local function appendReply(stream, reply)
  redis.call('XADD', base .. 'replies:' .. stream, 'MAXLEN', '~', ENTRIES_KEPT, '*', unpack(reply))
end
local marks, locks = {}, {}
for i = 5, #ARGV, 7 do
  marks[#marks + 1] = base .. 'retain:' .. ARGV[i]
  locks[#locks + 1] = ARGV[i + 1] .. ARGV[i] .. ':lock'
end
marks, locks = redis.call('MGET', unpack(marks)), redis.call('MGET', unpack(locks))
local kept, newBytes, seen, done, replies = {retained = {}, transient = {}}, 0, {}, {}, {}
for at = 1, #locks do
  local id, lane, token, kind, attempts, stream, result = unpack(ARGV, at * 7 - 2, at * 7 + 4)
  local job = lane .. id
  if marks[at] and kind ~= 'failed' then forgetFailure(id) end
  local index, bytes, before = 'transient', #result + 200, false
  if kind == 'retained' or kind == '' and marks[at] then
    local more
    more, before = retain(id, job, result, attempts)
    index, bytes = 'retained', bytes + more
  else
    before = redis.call('SET', base .. 'result:' .. id, result, 'PX', ARGV[3], 'GET')
  end
  local member = id .. '/' .. bytes
  if not seen[member] and not (before and redis.call('ZSCORE', base .. 'results:' .. index, member)) then newBytes = newBytes + bytes end
  seen[member] = true
  table.insert(kept[index], now)
  table.insert(kept[index], member)
  if token ~= '' and locks[at] == token then
    redis.call('LREM', lane .. 'active', -1, id)
    done[lane] = done[lane] or {ids = {}, keys = {}}
    table.insert(done[lane].ids, id)
    for _, part in ipairs({'', ':lock', ':logs'}) do table.insert(done[lane].keys, job .. part) end
  end
  if stream ~= '' then
    local reply = replies[stream] or {bytes = 0}
    if reply.bytes > ENTRY_BYTES then
      appendReply(stream, reply)
      reply = {bytes = 0}
    end
    table.insert(reply, id)
    table.insert(reply, #result <= REPLY_BYTES and result or '')
    reply.bytes = reply.bytes + #reply[#reply]
    replies[stream] = reply
  end
end
for index, members in pairs(kept) do
  if #members > 0 then redis.call('ZADD', base .. 'results:' .. index, unpack(members)) end
end
redis.call('INCRBY', base .. 'result-bytes', newBytes)
for stream, reply in pairs(replies) do
  appendReply(stream, reply)
  redis.call('PEXPIRE', base .. 'replies:' .. stream, REPLIES_KEPT_MS)
end
for lane, jobs in pairs(done) do
  redis.call('SREM', lane .. 'stalled', unpack(jobs.ids))
  redis.call('DEL', unpack(jobs.keys))
  release(base, jobs.ids)
  -- If the number of active jobs is limited, another one may become active now.
  if redis.call('HEXISTS', lane .. 'meta', 'concurrency') == 1 then redis.call('ZADD', lane .. 'marker', 0, '0') end
end
evict('results:transient', 'result:', now - ARGV[3], tonumber(ARGV[4]))
evict('results:retained', 'retained:', now - ARGV[2], tonumber(ARGV[4]))
