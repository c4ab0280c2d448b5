// Reads the status from Redis and MongoDB, while the API does not answer.
import type { Status } from '@sluice/contract'
import { openAdmin } from '@sluice/operations'
import type { DoctorDeps } from '../doctor/doctor-command.ts'

/** Needs no key, because anybody who may connect to Redis can see everything in it. */
export async function readStatus({
  openDb,
  withQueue,
}: Pick<DoctorDeps, 'openDb' | 'withQueue'>): Promise<Status> {
  const { db, close } = await openDb()
  try {
    return await withQueue((redis, keys) =>
      openAdmin(redis, keys, db).viewFor({ role: 'operator', by: 'terminal' }).readStatus(),
    )
  } finally {
    await close()
  }
}
