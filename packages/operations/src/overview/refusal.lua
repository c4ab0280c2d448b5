-- Tries a write that changes nothing. Returns why Redis refuses it, or ''. An error would have
-- clients connect again.
local reply = redis.pcall('DEL', KEYS[1] .. 'nothing')
return type(reply) == 'table' and reply.err or ''
