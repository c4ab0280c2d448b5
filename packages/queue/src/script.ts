import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'

/** Runs a Lua script on the key that it is given and on those that begin with it. */
export type Script = (key: string, ...args: (string | number)[]) => Promise<unknown>

/** Sends a script by its hash, and whole only where Redis does not know it (after a restart). */
export function createScript(redis: Redis, lua: string): Script {
  const sha = hash('sha1', lua)
  return async (key, ...args) => {
    try {
      return await redis.evalsha(sha, 1, key, ...args)
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return await redis.eval(lua, 1, key, ...args)
    }
  }
}
