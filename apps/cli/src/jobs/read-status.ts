// Reads the status from Redis and MongoDB, while the API does not answer.
import type { Status } from '@sluice/contract'
import { openAdmin } from '@sluice/operations'
import type { DoctorDeps } from '../doctor/doctor-command.ts'
import { withDb } from '../with-db.ts'

/** Needs no key, because anybody who may connect to Redis can see everything in it. */
export function readStatus(deps: Pick<DoctorDeps, 'openDb' | 'withQueue'>): Promise<Status> {
  return withDb(deps, (db) =>
    deps.withQueue((redis, keys) =>
      openAdmin(redis, keys, db).viewFor({ role: 'operator', by: 'terminal' }).readStatus(),
    ),
  )
}
