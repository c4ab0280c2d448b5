// Entry point `@sluice/process/redis`: connections to Redis, and the scripts that run on them.
export type { Redis } from 'ioredis'
export { type QueueAddress, readRedisUrl } from './find-primary.ts'
export { serverOf } from './primary.ts'
export * from './redis-clock.ts'
export * from './redis-connections.ts'
export * from './script.ts'
export * from './watch-redis.ts'
