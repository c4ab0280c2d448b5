// Checks Redis: whether it keeps what it accepts, its replicas, its layout, and the processes that use it.
import type { SeenProcess } from '@sluice/contract'
import { ALIVE_MS, createReadOverview, infoField, LAYOUT, type QueueKeys, type Redis, redisFaults } from '@sluice/queue'
import { printable } from '../terminal.ts'
import { type Check, check, note, readClock } from './check.ts'

/** Beyond this part of its memory, a burst may fill Redis. */
const FULL = 0.8

/** Returns the processes of a queue that are alive. */
export async function readAlive(redis: Redis, keys: QueueKeys): Promise<SeenProcess[]> {
  const { processes } = await createReadOverview(redis, keys)()
  return processes.filter(({ seenMsAgo }) => seenMsAgo < ALIVE_MS)
}

/** Checks Redis and reads its clock (ms ahead of this machine). Changes nothing. @param minMemory in bytes. */
export async function checkRedis(redis: Redis, keys: QueueKeys, minMemory: number, confirming: number) {
  const info = await redis.info()
  const { remoteAddress, remotePort } = redis.stream
  const cli = `redis-cli -h ${remoteAddress} -p ${remotePort}`
  const set = (setting: string) => `${cli} config set ${setting}  # and in its redis.conf`
  const numberOf = (name: string) => Number(infoField(info, name) ?? 0)
  // A managed Redis, and the least rights that Sluice needs, have no CONFIG.
  const ask = async (name: string) => String(await redis.config('GET', name).catch(() => '')).split(',')[1]
  const [fsync, minReplicas] = [await ask('appendfsync'), await ask('min-replicas-to-write')]
  const layout = Number(await redis.get(`${keys.base}layout`))
  const faults = Object.values(redisFaults(info, minMemory)).flat()
  const used = numberOf('used_memory')
  const most = numberOf('maxmemory') || numberOf('total_system_memory')
  const unwritten = /^(?:aof_last_write|aof_last_bgrewrite|rdb_last_bgsave)_status:(?!ok).*$/m.exec(info)?.[0].trim()
  const save = unwritten?.startsWith('rdb') ? 'bgsave schedule' : 'bgrewriteaof'
  const online = info.match(/^slave\d+:.*state=online/gm)?.length ?? 0
  const needed = confirming > 0 ? confirming + 1 : 0
  const guard = Math.min(needed, online, 1)
  const isGuarded = minReplicas === undefined || (Number(minReplicas) >= guard && Number(minReplicas) <= online)
  const follow = `redis-cli -h REPLICA replicaof ${remoteAddress} ${remotePort}`
  const checks: Check[] = [
    ...faults.map((text): Check => ({ state: 'FAULT', text })),
    ...(minReplicas ? [] : [note('CONFIG is refused: appendfsync and min-replicas-to-write can’t be asked')]),
    check(fsync !== 'no', `appendfsync: ${fsync ?? 'unknown'}`, set('appendfsync everysec')),
    check(!unwritten, `last writes to its disk: ${unwritten ?? 'ok'}`, `${cli} ${save}  # when its disk has space`),
    check(used < most * FULL, `memory: ${used} of ${most} bytes`, set(`maxmemory ${most * 2}`)),
    check(online >= needed, `replicas: ${online} online, ${needed} needed by REDIS_REPLICAS`, follow),
    check(isGuarded, `min-replicas-to-write: ${minReplicas}, ${online} online`, set(`min-replicas-to-write ${guard}`)),
    check(
      layout <= LAYOUT.reads,
      `layout: ${layout}, read up to ${LAYOUT.reads}`,
      'git checkout RELEASE  # a newer one',
    ),
    checkVersions(await readAlive(redis, keys)),
  ]
  const aheadMs = await readClock(async () => {
    const [seconds, microseconds] = await redis.time()
    return Number(seconds) * 1_000 + Number(microseconds) / 1_000
  })
  return { host: `Redis at ${remoteAddress}:${remotePort}`, checks, aheadMs }
}

/** Two releases run during an upgrade. Afterwards, this finds a process that was forgotten. */
function checkVersions(alive: readonly SeenProcess[]): Check {
  if (alive.length === 0) return note('processes: none is alive')
  const newest = alive.toSorted((one, other) => one.startedAt.localeCompare(other.startedAt)).at(-1)?.version
  const others = alive.filter(({ version }) => version !== newest)
  const named = others.map(({ kind, host, pid, version }) => `; ${kind} ${host}:${pid} has ${version}`).join('')
  const text = printable(`processes: ${alive.length}, the newest has version ${newest}${named}`)
  return check(named === '', text, printable(others.map(({ host, pid }) => `ssh ${host} kill ${pid}`).join('; ')))
}
