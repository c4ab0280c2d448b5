// Shared by the programs `sluice` and `start`: output, errors, and access to the Sluice and Redis that they use.
export { messageForPeople, RedisAwayError, UserError } from './errors.ts'
export {
  type ApiOptions,
  apiOptions,
  type FindApiDeps,
  findApi,
  findDashboard,
  type KeyHolder,
  type Target,
} from './find-api.ts'
export {
  claimFolder,
  findMongodb,
  type InstancePaths,
  instancePaths,
  type RunningInstance,
  readRunning,
} from './instance.ts'
export { processFacts } from './process-facts.ts'
export { fail, runProgram } from './run-program.ts'
export { stopRequests } from './stop-requests.ts'
export * from './terminal.ts'
export { type QueueAddress, withRedis } from './with-redis.ts'
