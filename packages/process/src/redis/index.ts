// Entry point `@sluice/process/redis`: connections to Redis, and the scripts that run on them.
export type { Redis } from 'ioredis'
export { type QueueAddress, readRedisUrl } from './find-primary.ts'
export { serverOf } from './primary.ts'
export { openRedisClock, readRedisTime } from './redis-clock.ts'
export {
  connectFailFast,
  connectLike,
  connectRetrying,
  createSilence,
} from './redis-connections.ts'
export {
  asList,
  createReadRefusal,
  isUnavailable,
  observeCommands,
  openScript,
  type Script,
  scriptJson,
} from './script.ts'
export {
  infoField,
  LAYOUT,
  redisFaults,
  unwrittenOf,
  watchLayout,
  watchRedis,
} from './watch-redis.ts'
