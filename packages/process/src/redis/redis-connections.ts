// Opens connections to Redis that fail fast or that retry. Checks that Redis keeps accepted jobs: that it evicts
// nothing, writes an append-only file, and has enough memory.
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { openPrimary, type QueueAddress } from './primary.ts'

// A class of ioredis 6 extends String. That leaves V8's String.prototype in its slow form (a dictionary): optimised
// code then looks up `length` and `charCodeAt` for each character, and counting words takes 2.6 times as long.
// Enumerating the prototype makes it fast again.
for (const _ in String.prototype) break

/** Receives each error of a connection, which reconnects by itself. */
type OnError = (error: Error) => void

const backoff = (attempt: number) => Math.min(50 * 2 ** attempt, 500)

/** Replies of a server that may no longer be the queue's primary. It has not run the command. */
const MOVED = /^(MOVED|READONLY)/
/** Replies of a server that may have been replaced without its notice, or of a cluster without a primary. */
const ISOLATED = /^(CLUSTERDOWN|NOREPLICAS|MASTERDOWN)/
const ISOLATED_EVERY_MS = 1_000

/**
 * Makes the function that has ioredis connect again, so that it finds the new primary. `moved`: 2 sends a command again
 * that the old primary refused, 1 does not. For an isolated server, at most once in `ISOLATED_EVERY_MS`.
 */
function createReconnectOnError(moved: 1 | 2) {
  let last = Number.NEGATIVE_INFINITY
  return ({ message }: Error): false | 1 | 2 => {
    if (MOVED.test(message)) return moved
    if (!ISOLATED.test(message) || performance.now() - last < ISOLATED_EVERY_MS) return false
    last = performance.now()
    return 1
  }
}

/**
 * A connection that owes a reply and is silent for this time is replaced: TCP itself would notice only after a quarter
 * of an hour that the peer is gone. The time is longer where no callers wait: a slow Redis is the likelier cause there.
 */
const SILENT_MS = { callersWait: 2_000, elsewhere: 10_000 }

/** Connects for callers that can't wait: commands fail at once while Redis is away, and within 1.5 s while it hangs. */
export function connectFailFast(address: QueueAddress, onError: OnError): Redis {
  const times = { commandTimeout: 1_500, connectTimeout: 1_500, socketTimeout: SILENT_MS.callersWait }
  // No command is sent again: it could add a job whose caller has got a refusal.
  const commands = { enableOfflineQueue: false, maxRetriesPerRequest: 1, autoResendUnfulfilledCommands: false }
  const options = { ...commands, ...times, retryStrategy: backoff, reconnectOnError: createReconnectOnError(1) }
  return openPrimary(address, options).on('error', onError)
}

/** Connects for work that can wait: commands are retried until Redis is back. */
export function connectRetrying(address: QueueAddress, onError: OnError): Redis {
  return openPrimary(address, retrying(SILENT_MS.elsewhere)).on('error', onError)
}

/**
 * Connects to the server that another connection leads to, for work that can wait.
 *
 * @param silentMs after this time without a reply that is due, the connection counts as dead. A command must block for
 *   a shorter time.
 */
export function connectLike(redis: Redis, onError: OnError, silentMs: number): Redis {
  return redis.duplicate(retrying(silentMs)).on('error', onError)
}

const retrying = (silentMs: number) => ({
  commandTimeout: undefined,
  connectTimeout: 10_000,
  socketTimeout: silentMs,
  enableOfflineQueue: true,
  maxRetriesPerRequest: null,
  autoResendUnfulfilledCommands: true,
  retryStrategy: backoff,
  reconnectOnError: createReconnectOnError(2),
})

/** Resolves if Redis answers. Rejects at once without a connection. */
export async function pingRedis(redis: Redis): Promise<void> {
  if (redis.status !== 'ready') throw new Error('not connected to Redis')
  await redis.ping()
}

/** The pause between two calls of `ask` while Redis is silent. */
const ASK_EVERY_MS = 250

/**
 * Tracks a silence of Redis. Call `begin` after a command that Redis left unconfirmed: it calls `ask` until Redis
 * answers. Send nothing else while `lasts` is true.
 */
export function createSilence(redis: Redis, ask: () => Promise<unknown>) {
  const silence = {
    lasts: false,
    async begin(): Promise<void> {
      if (silence.lasts) return
      silence.lasts = true
      while (silence.lasts && redis.status !== 'end') {
        silence.lasts = await ask().then(
          () => false,
          () => delay(ASK_EVERY_MS, true, { ref: false }),
        )
      }
    },
  }
  return silence
}

/** The checks of Redis besides its eviction policy. A policy that evicts is always refused. */
interface RedisChecks {
  /** Whether a missing append-only file and too little memory are reported or refused. */
  redisChecks: 'warn' | 'refuse'
  /** In bytes. */
  minRedisMemory: number
}

/** This Redis must not be used. The message names each fault with the command that fixes it. */
class UnfitRedisError extends Error {
  override name = 'UnfitRedisError'
}

/** The first check waits at most this long for a connection: while Redis loads data, it is neither ready nor closed. */
const READY_MS = 2_000
/** A Redis that stays connected is checked each minute: somebody may change its settings while it runs. */
const CHECK_EVERY_MS = 60_000

/**
 * Checks Redis now, each time that the connection is ready again (it may be another Redis), and each minute. Does not
 * wait for a Redis that is away.
 *
 * @param warn receives each fault that is not refused: when it is found first, and when it is back.
 * @throws {UnfitRedisError} if the first check fails. Later the error is an unhandled rejection, which ends the
 *   process.
 */
export async function watchRedis(redis: Redis, checks: RedisChecks, warn: (fault: string) => void): Promise<void> {
  let known: readonly string[] = []

  /** Finds the faults by INFO, which managed Redis allows even if it refuses CONFIG. */
  async function check(): Promise<void> {
    if (redis.status !== 'ready') return
    // If Redis goes away during the check, the next one comes when it is back.
    const info = await redis.info().catch(() => undefined)
    if (info === undefined) return
    const { eviction, others } = redisFaults(info, checks.minRedisMemory)
    const refused = checks.redisChecks === 'refuse' ? [...eviction, ...others] : eviction
    if (refused.length > 0) throw new UnfitRedisError(refused.join(' '))
    for (const fault of others) if (!known.includes(fault)) warn(fault)
    known = others
  }

  const opened = new Promise((resolve) => redis.once('ready', resolve).once('error', resolve).once('close', resolve))
  if (redis.status !== 'ready') await Promise.race([opened, delay(READY_MS, undefined, { ref: false })])
  redis.on('ready', check)
  const timer = setInterval(check, CHECK_EVERY_MS).unref()
  redis.once('end', () => clearInterval(timer))
  await check()
}

/** Finds faults in the reply of INFO, each with the command that fixes it. @param minMemory in bytes. */
export function redisFaults(info: string, minMemory: number): Record<'eviction' | 'others', string[]> {
  const field = (name: string) => infoField(info, name)
  const policy = field('maxmemory_policy') ?? 'noeviction'
  // Without a limit of its own, Redis may use all of its machine's memory.
  const memory = Number(field('maxmemory')) || Number(field('total_system_memory'))
  const eviction =
    `Redis runs with maxmemory-policy ${policy} and would throw accepted jobs away when its memory is full. ` +
    'Set it to noeviction: `redis-cli config set maxmemory-policy noeviction`, and `maxmemory-policy noeviction` in redis.conf.'
  const durability =
    'Redis writes no append-only file, so a crash of Redis loses all accepted jobs that wait. ' +
    'Turn it on: `redis-cli config set appendonly yes`, and `appendonly yes` with `appendfsync everysec` in redis.conf.'
  const size =
    `Redis may use ${memory} bytes of memory, less than the ${minMemory} of MIN_REDIS_MEMORY, and refuses jobs when that is full. ` +
    `Give it more: \`redis-cli config set maxmemory ${minMemory}\`, and \`maxmemory ${minMemory}\` in redis.conf; or lower the bounds of the queue.`
  const others = [...(field('aof_enabled') === '0' ? [durability] : []), ...(memory < minMemory ? [size] : [])]
  return { eviction: policy === 'noeviction' ? [] : [eviction], others }
}

/** Reads a field of INFO. Undefined if this Redis has none, or hides it. */
export function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]
}
