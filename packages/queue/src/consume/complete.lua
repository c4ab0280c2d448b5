#!lua flags=allow-oom
-- Stores the results of jobs, replies them to the replicas that wait, and removes the jobs that succeeded from the queue, in one step. The removal is
-- that of BullMQ's own script with `removeOnComplete`, without events. A job whose lock belongs to another worker stays: it was counted as stalled.
-- A failed job stays as well: BullMQ keeps it. Runs although Redis is full, because it frees memory.
--
-- Retained results (with the request, copied from BullMQ's job) and transient ones share a bound in bytes, of which each kind may have half, and more
-- while the other needs less. Beyond it, the oldest are evicted first, but none that this very call has stored.
--
-- KEYS: the queue's base. ARGV: ms to keep retained results, ms to keep transient ones, their bytes bound, then for each job: id, the beginning of its
-- lane's keys, token, kind (retained, failed or ''), attempts, reply stream, result. Returns 1 if more must be evicted: then call it again without jobs.
--include ../load/load.lua
--include ../failed/failed-set.lua
--include ../replies/results.lua
local EVICTED_AT_ONCE = 500 -- A call must not block Redis for more than about a millisecond.
-- A replica that is far behind looks results up, so its stream may be cut: 1,300 entries of at most 12 KB are 16 MB.
local ENTRIES_KEPT = 1300
local ENTRY_BYTES = 8192 -- An entry is closed beyond so many bytes.
local REPLY_BYTES = 4096 -- Of a larger result the stream has the job's id only; the replica looks it up.
local REPLIES_KEPT_MS = 600000 -- A stream without new entries for so long belongs to a replica that is gone.
local base, bound = KEYS[1], tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local kinds = {
  retained = {prefix = 'retained:', ms = tonumber(ARGV[1]), stored = {}, bytes = 0},
  transient = {prefix = 'result:', ms = tonumber(ARGV[2]), stored = {}, bytes = 0},
}
local new, evicted = {}, {}
local function retain(id, job, result, attempts)
  local key = base .. 'retained:' .. id
  local data = redis.call('HGET', job, 'data') or redis.call('HGET', key, 'data') or ''
  redis.call('DEL', base .. 'result:' .. id)
  local added = redis.call('HSET', key, 'result', result, 'data', data, 'at', string.format('%.0f', now), 'attempts', attempts)
  redis.call('PEXPIRE', key, ARGV[1])
  return #data, added == 0
end
local function store(id, job, kind, result, attempts)
  local isMarked = kind ~= 'failed' and redis.call('HGET', job, 'sluice:retained')
  if isMarked then forgetFailure(base, id) end
  local name, bytes, before = 'transient', #result + RESULT_BYTES, false
  if kind == 'retained' or isMarked then
    local more
    more, before = retain(id, job, result, attempts)
    name, bytes = 'retained', bytes + more
  else
    before = redis.call('SET', base .. 'result:' .. id, result, 'PX', ARGV[2], 'GET')
  end
  local member, to = id .. '/' .. bytes, kinds[name]
  if not new[member] and not (before and redis.call('ZSCORE', base .. 'results:' .. name, member)) then to.bytes = to.bytes + bytes end
  new[member] = true
  table.insert(to.stored, now)
  table.insert(to.stored, member)
end
-- Returns whether more must be evicted.
local function evict(name, room)
  local kind, index = kinds[name], base .. 'results:' .. name
  while true do
    local oldest = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
    local member = oldest[1]
    if not member then return false end
    local isExpired = tonumber(oldest[2]) < now - kind.ms
    if not isExpired and (kind.bytes <= room or new[member]) then return false end
    if #evicted == EVICTED_AT_ONCE then return true end
    local id, bytes = string.match(member, '^(.*)/(%d+)$')
    redis.call('ZREM', index, member)
    kind.bytes = redis.call('DECRBY', base .. 'bytes:' .. name, bytes)
    evicted[#evicted + 1] = base .. kind.prefix .. id
  end
end
local function appendReply(stream, reply)
  redis.call('XADD', base .. 'replies:' .. stream, 'MAXLEN', '~', ENTRIES_KEPT, '*', unpack(reply))
end
local locks = {}
for i = 4, #ARGV, 7 do locks[#locks + 1] = ARGV[i + 1] .. ARGV[i] .. ':lock' end
if #locks > 0 then locks = redis.call('MGET', unpack(locks)) end
local done, replies = {}, {}
for at = 1, #locks do
  local id, lane, token, kind, attempts, stream, result = unpack(ARGV, at * 7 - 3, at * 7 + 3)
  local job = lane .. id
  store(id, job, kind, result, attempts)
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
    reply.bytes = reply.bytes + #id + #reply[#reply]
    replies[stream] = reply
  end
end
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
for name, kind in pairs(kinds) do
  if #kind.stored > 0 then redis.call('ZADD', base .. 'results:' .. name, unpack(kind.stored)) end
  kind.bytes = redis.call('INCRBY', base .. 'bytes:' .. name, kind.bytes)
end
local more = evict('transient', math.max(bound / 2, bound - kinds.retained.bytes))
more = evict('retained', math.max(bound / 2, bound - kinds.transient.bytes)) or more
if #evicted > 0 then redis.call('UNLINK', unpack(evicted)) end
return more and 1 or 0
