// Reads from Redis and MongoDB what the API would answer to an operator, while the API does not
// answer.
import { parseFailedJobQuery } from '@sluice/contract'
import { failedJobOf, openAdmin, requireActs } from '@sluice/operations'
import type { Redis } from '@sluice/process/redis'
import { checkFedStore, type QueueKeys } from '@sluice/queue'
import { readStore } from '@sluice/store'
import { UserError } from '@sluice/terminal'
import type { Db } from 'mongodb'
import type { DoctorDeps } from '../doctor/doctor-command.ts'
import { type Fallback, NotFailedError, type Reads } from './admin-client.ts'

/**
 * Opens connections for one read. It needs no key, because anybody who may connect to Redis can see
 * everything in it.
 */
export function createReadDirectly({
  openDb,
  withQueue,
}: Pick<DoctorDeps, 'openDb' | 'withQueue'>): Fallback['readDirectly'] {
  return async (ask) => {
    const { db, close } = await openDb()
    try {
      return await withQueue((redis, keys) => {
        const reads = readsOf(openAdmin(redis, keys, db).viewFor(OPERATOR))
        return ask({
          ...reads,
          find: (query) => checkStore(redis, keys, db).then(() => reads.find(query)),
        })
      })
    } finally {
      await close()
    }
  }
}

const OPERATOR = { role: 'operator', by: 'terminal' } as const

/** Throws an `OtherStoreError` if the threads of this queue are stored in another store. */
async function checkStore(redis: Redis, keys: QueueKeys, db: Db): Promise<void> {
  // While MongoDB is unavailable, people may still look at the queue.
  const own = await readStore(db).catch(() => undefined)
  if (own !== undefined) await checkFedStore(redis, keys, own, false)
}

function readsOf(view: ReturnType<ReturnType<typeof openAdmin>['viewFor']>): Reads {
  return {
    async list(filter, { limit, after }) {
      const page = { limit: String(limit), ...(after !== undefined && { after }) }
      const query = parseFailedJobQuery(Object.entries({ ...filter, ...page }))
      if (!query.ok) throw new UserError('The filter cannot be used.')
      return view.listFailed(query.value)
    },
    groups: view.groupFailed,
    async show(id) {
      const found = await requireActs(view).revealJob(id)
      const failed = found && failedJobOf(found)
      if (failed === undefined) throw new NotFailedError('No failed job has this id.')
      return failed
    },
    operations: async () => ({ operations: await view.listOperations() }),
    find: (query) => view.find(query, new AbortController().signal),
    recent: (after) => view.listRecent(after === undefined ? {} : { after }),
    status: view.readStatus,
  }
}
