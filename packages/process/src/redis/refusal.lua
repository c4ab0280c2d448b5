-- Tries a write that changes nothing. Returns why Redis refuses it, or '', and from Redis 7.0 on which
-- commands its user may not send, or ''. It must not return an error, because clients would then
-- reconnect.
-- ARGV  the commands
local key = KEYS[1] .. 'nothing'
local reply = redis.pcall('DEL', key)
local writes, refused = type(reply) == 'table' and reply.err or '', {}
for _, command in ipairs(redis.acl_check_cmd and ARGV or {}) do
  if not redis.acl_check_cmd(command, key) then refused[#refused + 1] = command end
end
return {writes, #refused > 0 and 'NOPERM its user may not send ' .. table.concat(refused, ', ') or ''}
