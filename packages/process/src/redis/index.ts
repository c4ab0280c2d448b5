// The front door `@sluice/process/redis`: connections to Redis, and the scripts that they run.
export type { Redis } from 'ioredis'
export { LAYOUT, watchLayout } from './layout.ts'
export { type QueueAddress, readRedisUrl, serverOf } from './primary.ts'
export {
  connectFailFast,
  connectLike,
  connectRetrying,
  createSilence,
  infoField,
  pingRedis,
  redisFaults,
  watchRedis,
} from './redis-connections.ts'
export { asList, observeCommands, openScript, type Script } from './script.ts'
