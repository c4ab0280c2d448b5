// Checks Redis while a process runs. Redis must not evict keys, must write an append-only file, and
// must have enough memory. This release must be able to read what other releases wrote
// (docs/adr/0018-layouts-of-redis.md).
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { openScript } from './script.ts'

/**
 * `redisChecks`: whether a missing append-only file, or less memory than `minRedisMemory` (in
 * bytes), is logged or ends the process. An eviction policy always ends it.
 */
interface RedisChecks {
  redisChecks: 'warn' | 'refuse'
  minRedisMemory: number
}

/**
 * The first check waits at most this long for a connection. (While Redis loads data, the connection
 * is neither ready nor closed.)
 */
const READY_MS = 2_000
/** Redis is checked again this often, because somebody may change its settings while it runs. */
const CHECK_EVERY_MS = 60_000

/**
 * Checks that Redis keeps accepted jobs: now, whenever the connection becomes ready again, and each
 * minute. Does not wait for a Redis that is unavailable.
 *
 * @param warn is called with each fault that does not end the process, when it is found first, and
 * when it returns after it was repaired.
 * @throws an error that names each fault, and the command that fixes it. A later check throws an
 * unhandled rejection, which ends the process.
 */
export async function watchRedis(
  redis: Redis,
  checks: RedisChecks,
  warn: (fault: string) => void,
): Promise<void> {
  let known: readonly string[] = []

  /** Finds the faults with INFO, which managed Redis allows even if it refuses CONFIG. */
  async function check(): Promise<void> {
    if (redis.status !== 'ready') return
    // If Redis becomes unavailable during the check, the next check follows when it is available
    // again.
    const info = await redis.info().catch(() => undefined)
    if (info === undefined) return
    const { eviction, others } = redisFaults(info, checks.minRedisMemory)
    const refused = checks.redisChecks === 'refuse' ? [...eviction, ...others] : eviction
    if (refused.length > 0) throw new Error(refused.join(' '))
    for (const fault of others) if (!known.includes(fault)) warn(fault)
    known = others
  }

  const opened = new Promise((resolve) =>
    redis.once('ready', resolve).once('error', resolve).once('close', resolve),
  )
  if (redis.status !== 'ready')
    await Promise.race([opened, delay(READY_MS, undefined, { ref: false })])
  repeat(redis, CHECK_EVERY_MS, check)
  await check()
}

/**
 * Calls `check` whenever the connection becomes ready again (Redis may be another one), and every
 * `everyMs`.
 */
function repeat(redis: Redis, everyMs: number, check: () => Promise<void>): void {
  redis.on('ready', check)
  const timer = setInterval(check, everyMs).unref()
  redis.once('end', () => clearInterval(timer))
}

/**
 * Finds faults in the reply to INFO, each with the command that fixes it.
 * @param minMemory in bytes.
 */
export function redisFaults(
  info: string,
  minMemory: number,
): Record<'eviction' | 'others', string[]> {
  const field = (name: string) => infoField(info, name)
  const policy = field('maxmemory_policy') ?? 'noeviction'
  // Without its own limit, Redis may use all memory of its machine.
  const memory = Number(field('maxmemory')) || Number(field('total_system_memory'))
  const eviction =
    `Redis runs with maxmemory-policy ${policy} and would throw accepted jobs away when its memory is full, so APIs and workers stop. ` +
    'Set it to noeviction: `redis-cli config set maxmemory-policy noeviction`, and `maxmemory-policy noeviction` in redis.conf.'
  const durability =
    'Redis writes no append-only file, so a crash of Redis loses all accepted jobs that wait. ' +
    'Turn it on: `redis-cli config set appendonly yes`, and `appendonly yes` with `appendfsync everysec` in redis.conf.'
  const size =
    `Redis may use ${memory} bytes of memory, less than the ${minMemory} of MIN_REDIS_MEMORY, and refuses jobs when that is full. ` +
    `Give it more: \`redis-cli config set maxmemory ${minMemory}\`, and \`maxmemory ${minMemory}\` in redis.conf; or lower the bounds of the queue.`
  const others = [
    ...(field('aof_enabled') === '0' ? [durability] : []),
    ...(memory < minMemory ? [size] : []),
  ]
  return { eviction: policy === 'noeviction' ? [] : [eviction], others }
}

/**
 * Finds in INFO what Redis could not write to its disk, and the command that writes it when there
 * is space.
 */
export function unwrittenOf(info: string): { status: string; command: string } | undefined {
  const status = /^(?:aof_last_write|aof_last_bgrewrite|rdb_last_bgsave)_status:(?!ok).*$/m
    .exec(info)?.[0]
    .trim()
  return status === undefined
    ? undefined
    : { status, command: status.startsWith('rdb') ? 'bgsave schedule' : 'bgrewriteaof' }
}

/** Reads a field of INFO. Returns undefined if this Redis does not have it, or hides it. */
export function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]
}

/**
 * The layout of a queue's keys and values, as a number. It rises if an older release could not read
 * what this release writes. `test/e2e/redis-layout.full.test.ts` fails if the layout changes but
 * the number does not.
 */
export const LAYOUT = {
  /** What this release writes. */
  writes: 1,
  /**
   * The highest layout that this release reads. The release before a change reads the next layout,
   * too: `writes` + 1.
   */
  reads: 1,
}

const LAYOUT_EVERY_MS = 5_000

/**
 * Records the layout that this process writes, and checks that it can read what others wrote: now,
 * whenever the connection becomes ready again, and every five seconds. Does not wait for a Redis
 * that is unavailable.
 *
 * @param base the prefix of the queue's own keys.
 * @param onNewer is called when a later check fails. The process must then stop.
 * @throws if the first check fails.
 */
export async function watchLayout(
  redis: Redis,
  base: string,
  onNewer: (error: Error) => void,
  { writes, reads } = LAYOUT,
): Promise<void> {
  const note = openScript(redis, new URL('./layout.lua', import.meta.url))

  async function check(): Promise<void> {
    if (redis.status !== 'ready') return
    // If Redis becomes unavailable during the check, the next check follows when it is available
    // again.
    const found = Number(await note(base, writes).catch(() => 0))
    if (found <= reads) return
    throw new Error(
      `A newer release of Sluice has written layout ${found} to this queue, and this release reads only up to ${reads}. ` +
        'Start the newer release, or set QUEUE to another name (docs/operate/backup.md#upgrade).',
    )
  }

  await check()
  repeat(redis, LAYOUT_EVERY_MS, () => check().catch(onNewer))
}
