// All that operators see of a queue and do with it: the same for the API and for the dashboard.
import type { Redis } from 'ioredis'
import type { QueueKeys, Queues } from '../bullmq-layout/queue-keys.ts'
import { createFailedJobs } from '../failed/failed-set.ts'
import { createOperations } from '../failed/operations.ts'
import { createFind, type FindDeps } from '../find/find.ts'
import { createListRecent } from '../find/recent.ts'
import { createImports } from '../imports/imports.ts'
import { createResults } from '../replies/results.ts'
import { createReadHistory } from './history.ts'
import { createReadOverview } from './overview.ts'

export type OperatorAccess = ReturnType<typeof openOperatorAccess>

/** Opens a queue for operators. @param findStored searches what is stored, beside the queue. */
export function openOperatorAccess(redis: Redis, keys: QueueKeys, queues: Queues, findStored: FindDeps['findStored']) {
  const imports = createImports(redis, keys)
  return {
    failedJobs: createFailedJobs(redis, keys, queues),
    operations: createOperations(redis, keys),
    imports,
    find: createFind(redis, keys, { imports, results: createResults(redis, keys), findStored }),
    listRecent: createListRecent(redis, keys),
    readOverview: createReadOverview(redis, keys),
    readHistory: createReadHistory(redis, keys),
  }
}
