-- Tries a write that changes nothing. Returns why Redis refuses it, or '', and which commands its user
-- may not send (from Redis 7.0 on), or ''. It must not return an error, because clients would then
-- reconnect.
-- ARGV  the commands
local key = KEYS[1] .. 'nothing'

-- No command of a script needs more arguments.
local MOST_ARGUMENTS = 8

-- Redis 8.0 refuses to judge a command with fewer or more arguments than the command takes. TIME
-- takes none: it comes last, because older versions may read a key that is missing.
local function isAllowed(command)
  local sent = { command }
  for _ = 1, MOST_ARGUMENTS do
    sent[#sent + 1] = key
    local isJudged, allowed = pcall(redis.acl_check_cmd, unpack(sent))
    if isJudged then return allowed end
  end
  return redis.acl_check_cmd(command)
end

local reply, refused = redis.pcall('DEL', key), {}
for _, command in ipairs(redis.acl_check_cmd and ARGV or {}) do
  if not isAllowed(command) then refused[#refused + 1] = command end
end
local writes = type(reply) == 'table' and reply.err or ''
return {writes, #refused > 0 and 'NOPERM its user may not send ' .. table.concat(refused, ', ') or ''}
