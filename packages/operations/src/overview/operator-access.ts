// All that operators see of a queue and do with it: the same for the API and for the dashboard.

import type { QueueKeys } from '@sluice/queue'
import { createImports } from '@sluice/queue'
import type { Redis } from 'ioredis'
import { createFailedJobs } from '../failed/failed-jobs.ts'
import { createOperations } from '../failed/operations.ts'
import { createFind, type FindStored } from '../find/find.ts'
import { createListRecent } from '../find/list-recent.ts'
import { createReadHistory } from './history.ts'
import { createReadOverview } from './overview.ts'

export type OperatorAccess = ReturnType<typeof openOperatorAccess>

/** Opens a queue for operators. @param findStored looks up what is stored, beside the queue. */
export function openOperatorAccess(redis: Redis, keys: QueueKeys, findStored: FindStored) {
  const failedJobs = createFailedJobs(redis, keys)
  return {
    failedJobs,
    operations: createOperations(redis, keys),
    imports: createImports(redis, keys),
    find: createFind(redis, keys, failedJobs, findStored),
    listRecent: createListRecent(redis, keys),
    readOverview: createReadOverview(redis, keys),
    readHistory: createReadHistory(redis, keys),
  }
}
