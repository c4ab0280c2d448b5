// Checks Redis: whether it keeps what it accepts, its replicas, its layout, and the load of the
// queue. With `--after-restore`, deletes digests, results, idempotency keys and imports, which may
// refer to threads that the restored MongoDB no longer has, and applies deletions again.

import { createDeletionRecords } from '@sluice/boot/deletion-records'
import { readMarks } from '@sluice/boot/marks'
import { ALIVE_MS, type DeletionRecord } from '@sluice/contract'
import { createReadOverview, lossWords, NEARLY_FULL, retentionWords } from '@sluice/operations'
import {
  infoField,
  LAYOUT,
  type Redis,
  readRedisTime,
  readRedisUrl,
  redisFaults,
} from '@sluice/process/redis'
import type { LoadAudit, QueueKeys } from '@sluice/queue'
import {
  checkFedStore,
  createLoadAudit,
  feedStore,
  forgetAnswers,
  nameOf,
  OtherStoreError,
} from '@sluice/queue'
import { forgetDigests, mongoCommands, readStore, reasonBehind, renewStoreId } from '@sluice/store'
import { counted, UserError } from '@sluice/terminal'
import type { Db } from 'mongodb'
import { applyDeletions } from './apply-deletions.ts'
import { check, note, readClock, type ServerCheck } from './check.ts'

const CONFIG = [
  'appendfsync',
  'min-replicas-to-write',
  'proto-max-bulk-len',
  'client-output-buffer-limit',
]
/** The largest jobs and replies have about 10 MB (MAX_BODY_BYTES). Redis itself allows 512 MB. */
const LARGE_BYTES = 64 * 1024 * 1024

/** Returns the commands that ping each server in a `REDIS_URL`. They contain no credentials. */
export function pingCommands(redisUrl: string): string {
  const pings = readRedisUrl(redisUrl).endpoints.map(
    ({ host, port }) => `redis-cli -h ${host} -p ${port} ping`,
  )
  return `${pings.join('; ')}  # if it answers, correct REDIS_URL`
}

/**
 * Checks Redis and reads its clock (in ms ahead of this machine). Changes nothing, except that it
 * corrects the load of the queue.
 *
 * @param minMemory in bytes.
 * @param confirming the number of replicas that must confirm a write (REDIS_REPLICAS).
 */
export async function checkRedis(
  redis: Redis,
  keys: QueueKeys,
  db: Db,
  minMemory: number,
  confirming: number,
) {
  const info = await redis.info()
  const { remoteAddress, remotePort } = redis.stream
  const cli = `redis-cli -h ${remoteAddress} -p ${remotePort}`
  const set = (setting: string) => `${cli} config set ${setting}  # and in its redis.conf`
  const numberOf = (name: string) => Number(infoField(info, name) ?? 0)
  // A managed Redis refuses CONFIG, and a user with the least rights that Sluice needs may not send
  // it.
  const ask = async (name: string) =>
    String(await redis.config('GET', name).catch(() => '')).split(',')[1]
  const [fsync, minReplicas, argument, buffers = ''] = await Promise.all(CONFIG.map(ask))
  const [, ...replies] = /normal (\d+) (\d+)/.exec(buffers) ?? []
  const isLarge = (bytes: string) => Number(bytes) === 0 || Number(bytes) >= LARGE_BYTES
  const layout = Number(await redis.get(`${keys.base}layout`))
  const used = numberOf('used_memory')
  const most = numberOf('maxmemory') || numberOf('total_system_memory')
  const online = info.match(/^slave\d+:.*state=online/gm)?.length ?? 0
  const needed = confirming > 0 ? confirming + 1 : 0
  const guard = Math.min(needed, online, 1)
  const isGuarded = Number(minReplicas) >= guard && Number(minReplicas) <= online
  const guarded = `min-replicas-to-write: ${minReplicas}, ${online} online`
  const { retention, at, processes, redis: seen } = await createReadOverview(redis, keys)()
  const refusals = processes.flatMap(({ seenMsAgo, refusedCommands }) =>
    seenMsAgo < ALIVE_MS && refusedCommands ? `Redis refuses commands: ${refusedCommands}` : [],
  )
  const { others } = redisFaults(info, minMemory)
  const faults = new Set([...(seen.faults ?? []), ...others, ...refusals])
  const rights = `${cli} acl setuser USER RULES  # docs/operate/redis.md#rights-in-redis`
  const follow = `redis-cli -h REPLICA replicaof ${remoteAddress} ${remotePort}`
  const checks: ServerCheck[] = [
    ...Array.from(faults, (text): ServerCheck => {
      return { state: 'FAULT', text, fix: text.includes('NOPERM') ? rights : undefined }
    }),
    ...(fsync && minReplicas
      ? []
      : [note(`CONFIG is refused: ${CONFIG.join(', ')} can’t be asked`)]),
    ...(fsync ? [check(fsync !== 'no', `appendfsync: ${fsync}`, set('appendfsync everysec'))] : []),
    ...(argument
      ? [
          check(
            isLarge(argument),
            `proto-max-bulk-len: ${argument}, ${LARGE_BYTES} needed for large threads`,
            set(`proto-max-bulk-len ${LARGE_BYTES}`),
          ),
        ]
      : []),
    ...(buffers
      ? [
          check(
            replies.every(isLarge),
            `client-output-buffer-limit: ${buffers}`,
            set('client-output-buffer-limit "normal 0 0 0"'),
          ),
        ]
      : []),
    ...(infoField(info, 'rdb_last_bgsave_status')
      ? []
      : [note('last writes to its disk: INFO does not say')]),
    check(
      used < most * NEARLY_FULL,
      `memory: ${used} of ${most} bytes`,
      set(`maxmemory ${most * 2}`),
    ),
    check(
      online >= needed,
      `replicas: ${online} online, ${needed} needed by REDIS_REPLICAS`,
      follow,
    ),
    ...(minReplicas ? [check(isGuarded, guarded, set(`min-replicas-to-write ${guard}`))] : []),
    check(
      layout <= LAYOUT.reads,
      `layout: ${layout}, read up to ${LAYOUT.reads}`,
      'git checkout RELEASE  # a newer one',
    ),
    await askedOf(
      db,
      `the queue ${keys.queues.interactive} feeds this MongoDB`,
      checkStore(redis, keys, db),
    ),
    await askedOf(db, 'Redis has kept its data', checkLoss(redis, keys, db, cli)),
    ...(retention ? [note(retentionWords(retention, at))] : []),
    await checkLoad(redis, keys),
  ]
  const aheadMs = await readClock(() => readRedisTime(redis))
  return { host: `Redis at ${remoteAddress}:${remotePort}`, checks, aheadMs }
}

async function checkStore(redis: Redis, keys: QueueKeys, db: Db): Promise<ServerCheck> {
  const own = await readStore(db)
  const { interactive: queue } = keys.queues
  if (await checkFedStore(redis, keys, own, false))
    return { state: 'ok', text: `the queue ${queue} feeds the store ${nameOf(own)}` }
  return note(`no worker has ever worked on the queue ${queue}`)
}

async function checkLoss(redis: Redis, keys: QueueKeys, db: Db, cli: string): Promise<ServerCheck> {
  const { loss } = await readMarks(redis, keys, db)
  const text = loss ? lossWords(loss) : 'Redis has kept its data'
  const fix = `${cli} info keyspace  # if another database has the keys, correct REDIS_URL`
  return check(!loss, text, fix)
}

/**
 * Returns the result of a check that also asks MongoDB. If MongoDB is unavailable, returns a note.
 */
function askedOf(db: Db, what: string, checking: Promise<ServerCheck>): Promise<ServerCheck> {
  return checking.catch((error) => {
    if (error instanceof OtherStoreError) return { state: 'FAULT', text: error.message }
    return note(`whether ${what} can’t be asked: ${reasonBehind(error, db.client)}`)
  })
}

const LOAD: Readonly<Record<LoadAudit, ServerCheck>> = {
  right: { state: 'ok', text: 'load of the queue: agrees with its jobs' },
  corrected: note('load of the queue: was wrong, and is corrected'),
  relisted: note('load of the queue: has jobs that were in no list, and wait again'),
  many: note('load of the queue: not compared, because it has more than 1,000 jobs or tenants'),
}

async function checkLoad(redis: Redis, keys: QueueKeys): Promise<ServerCheck> {
  const audit = createLoadAudit(redis, keys)
  try {
    for (;;) {
      const outcome = await audit()
      if (outcome !== undefined) return LOAD[outcome]
    }
  } catch (error) {
    // This happens, for example, if Redis has too few replicas to accept writes.
    return note(`load of the queue: not compared: ${error}`)
  }
}

/**
 * Call after MongoDB was restored to an earlier moment, or moved. Removes digests, idempotency
 * keys, results and imports, applies deletions again, makes the queue feed this store, and returns
 * lines that say so. No API or worker may run meanwhile, because it could answer from what is not
 * removed yet, and such an answer can't be taken back.
 *
 * @param from records of deletions in a file: for a restore of both servers.
 * @throws {UserError} if an API or a worker runs. Then removes nothing.
 */
export async function afterRestore(
  redis: Redis,
  keys: QueueKeys,
  db: Db,
  from: AsyncIterable<DeletionRecord> | undefined,
): Promise<string[]> {
  const { processes } = await createReadOverview(redis, keys)()
  const alive = processes.filter(
    ({ kind, seenMsAgo }) => kind !== 'dashboard' && seenMsAgo < ALIVE_MS,
  )
  if (alive.length > 0) {
    const named = alive.map(({ kind, host, pid }) => `${kind} ${host}:${pid}`).join(', ')
    throw new UserError(
      `Nothing was removed, because APIs or workers run, and may answer for threads that are gone: ${named}. ` +
        'Stop all of them, and run this again (15 s later, if one was killed).',
    )
  }
  const records = createDeletionRecords(redis, keys, db)
  const count = await records.complete(from)
  const keysGone = await forgetAnswers(redis, keys)
  const digests = await forgetDigests(mongoCommands(db))
  const applied = count > 0 ? await applyDeletions(redis, keys, db, records) : []
  const store = await renewStoreId(db)
  await feedStore(redis, keys, store)
  const answers = 'idempotency keys, results of jobs, and imports'
  return [
    `Removed: the digests of ${counted(digests, 'source')}, and ${counted(keysGone, 'key')} of Redis (${answers}).`,
    ...applied,
    `The queue ${keys.queues.interactive} feeds the store ${nameOf(store)} from now on.`,
  ]
}
