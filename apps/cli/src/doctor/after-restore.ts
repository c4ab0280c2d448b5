// `sluice doctor --after-restore`: MongoDB was restored to an earlier moment, and nothing may answer for what is gone.
import { forgetAnswers, type QueueKeys, type Redis } from '@sluice/queue'
import { forgetDigests, type StoreCommands } from '@sluice/store'
import { UserError } from '../errors.ts'
import { counted, printable } from '../terminal.ts'
import { readAlive } from './redis-checks.ts'

/**
 * Removes digests, idempotency keys, results and imports, and says what it removed. An API or a worker that ran meanwhile
 * could answer by what is still there, and such an answer can't be taken back: so none may be alive.
 *
 * @throws {UserError} if one is. Then nothing was removed.
 */
export async function afterRestore(redis: Redis, keys: QueueKeys, commands: StoreCommands): Promise<string> {
  const alive = (await readAlive(redis, keys)).filter(({ kind }) => kind !== 'dashboard')
  if (alive.length > 0) {
    const named = alive.map(({ kind, host, pid }) => `${kind} ${host}:${pid}`).join(', ')
    throw new UserError(
      printable(
        `Nothing was removed, because APIs or workers run, and may answer for threads that are gone: ${named}. ` +
          'Stop all of them, and run this again (15 s later, if one was killed).',
      ),
    )
  }
  const keysGone = await forgetAnswers(redis, keys)
  const digests = await forgetDigests(commands)
  const answers = 'idempotency keys, results of jobs, and imports'
  return `Removed: the digests of ${counted(digests, 'source')}, and ${counted(keysGone, 'key')} of Redis (${answers}).`
}
