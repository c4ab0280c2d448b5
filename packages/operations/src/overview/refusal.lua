-- Tries a write that changes nothing, and returns why Redis refuses it, or ''. It must not return
-- an error, because clients would then reconnect.
local reply = redis.pcall('DEL', KEYS[1] .. 'nothing')
return type(reply) == 'table' and reply.err or ''
