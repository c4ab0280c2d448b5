// Finds the primary that has the queue. `REDIS_URL` names it, or Sentinels that know it, or nodes
// of a cluster.
import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type RedisOptions as AllOptions, Redis } from 'ioredis'

/**
 * Sentinels or nodes are asked one after the other, each for at most ASK_MS. After the last one,
 * the search pauses for ASK_EVERY_MS.
 */
const ASK_MS = 500
const ASK_EVERY_MS = 500
/**
 * We keep a connection to a Sentinel, because Sentinels announce failovers. If it ends, the next
 * attempt to connect follows after this time.
 */
const RECONNECT_MS = 10_000

/** Where a queue is. */
export interface QueueAddress {
  /** `redis://HOST:PORT`, `redis+sentinel://HOST,HOST/NAME` or `redis+cluster://HOST,HOST`. */
  redisUrl: string
  queue: string
}

/** Without `replyMapping`, which would change the type of all commands. */
export type RedisOptions = Omit<AllOptions, 'replyMapping'>
export type Endpoint = { host: string; port: number }
type OnPrimary = (host: string, port: number) => void

/**
 * Makes the function that finds the primary of a queue. `watchFailovers` is present only with
 * Sentinels, because only they announce failovers.
 */
export function createPrimaryFinder({ redisUrl, queue }: QueueAddress) {
  const { kind, endpoints, access, askAccess, name } = readRedisUrl(redisUrl)
  if (kind === 'server') return { access, findPrimary: async () => endpoints[0] }
  if (kind === 'cluster')
    return { access, findPrimary: createFindPrimary(endpoints, askAccess, askNode(`{${queue}}`)) }
  const watch = (onPrimary: OnPrimary) => watchFailovers(endpoints, askAccess, name, onPrimary)
  return {
    access,
    findPrimary: createFindPrimary(endpoints, askAccess, askSentinel(name)),
    watchFailovers: watch,
  }
}

/**
 * Reads a URL that the setting `REDIS_URL` has checked. Sentinel's own credentials are in its
 * query.
 */
export function readRedisUrl(url: string) {
  const [, scheme, kind = 'server', username, password, hosts = '', rest = ''] =
    /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^:@?]*)(?::([^?]*))?@)?([^@/?]+)(.*)$/.exec(
      url,
    ) ?? []
  // In the query, a plus is not a space, and a number sign does not begin a fragment: passwords may
  // contain both.
  const { pathname, searchParams } = new URL(
    `redis://hosts${rest.replaceAll('+', '%2B').replaceAll('#', '%23')}`,
  )
  const [, first = '', second = ''] = pathname.split('/')
  const [name, db] = kind === 'sentinel' ? [first, second] : ['', first]
  const accessBy = (user?: string | null, secret?: string | null): RedisOptions => ({
    ...(user && { username: user }),
    ...(secret && { password: secret }),
    ...(scheme === 'rediss' && { tls: {} }),
  })
  const own = accessBy(
    username && decodeURIComponent(username),
    password && decodeURIComponent(password),
  )
  const endpoints = hosts.split(',').map((one): Endpoint => {
    const [, ipv6, host = '', port] = /^(?:\[(.*)\]|(.*?))(?::(\d+))?$/.exec(one) ?? []
    return { host: ipv6 ?? host, port: Number(port ?? (kind === 'sentinel' ? 26_379 : 6_379)) }
  })
  return {
    kind,
    endpoints,
    name: decodeURIComponent(name),
    access: { ...own, db: Number(db) },
    /** The access to the Sentinels or nodes that are asked for the primary. */
    askAccess:
      kind === 'sentinel'
        ? accessBy(searchParams.get('sentinelUsername'), searchParams.get('sentinelPassword'))
        : own,
  }
}

/**
 * Adds the server's name, which Node sends (SNI, RFC 6066) only if `servername` has it. An IP
 * address is not a name.
 */
export function accessTo({ host, port }: Endpoint, access: RedisOptions): RedisOptions {
  return {
    ...access,
    host,
    port,
    ...(access.tls && { tls: { servername: isIP(host) > 0 ? '' : host } }),
  }
}

/**
 * Calls `onPrimary` when a Sentinel announces a new primary, until the returned function is called.
 * Without this, a connection to a frozen primary would stay: it is silent, so it does not show that
 * the primary was replaced (docs/adr/0019-one-server-of-redis.md).
 */
function watchFailovers(
  sentinels: readonly Endpoint[],
  access: RedisOptions,
  name: string,
  onPrimary: OnPrimary,
): () => void {
  const watchers = sentinels.map((sentinel) => {
    const always = {
      retryStrategy: () => RECONNECT_MS,
      maxRetriesPerRequest: null,
      enableReadyCheck: false,
    }
    const watcher = new Redis({ ...accessTo(sentinel, access), ...always }).on('error', () => {})
    watcher.subscribe('+switch-master').catch(() => {}) // It was closed before the reply.
    return watcher.on('message', (_, text) => {
      const [of, , , host = '', port] = text.split(' ')
      if (of === name) onPrimary(host, Number(port))
    })
  })
  return () => {
    for (const watcher of watchers) watcher.disconnect()
  }
}

/**
 * Asks a Sentinel or a node for the primary, and calls `note` with other servers that can be asked.
 */
type Ask = (redis: Redis, asked: Endpoint, note: (other: Endpoint) => void) => Promise<Endpoint>

function askSentinel(name: string): Ask {
  const textsIn = (reply: unknown) => (Array.isArray(reply) ? reply.map(String) : [])
  return async (redis, _, note) => {
    const [address, others] = await Promise.all([
      redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name),
      redis.call('SENTINEL', 'SENTINELS', name),
    ])
    for (const other of Array.isArray(others) ? others.map(textsIn) : []) {
      const [host = '', port, flags] = ['ip', 'port', 'flags'].map(
        (field) => other[other.indexOf(field) + 1],
      )
      if (!flags?.includes('disconnected')) note({ host, port: Number(port) })
    }
    const [host = '', port] = textsIn(address)
    return { host, port: Number(port) }
  }
}

function askNode(key: string): Ask {
  return async (redis, asked, note) => {
    const [slot, ranges] = await Promise.all([
      redis.cluster('KEYSLOT', key),
      redis.cluster('SLOTS'),
    ])
    // A node that does not know its own address replies with an empty one.
    for (const [, , ...nodes] of ranges)
      for (const [host, port] of nodes) note({ host: host || asked.host, port })
    const owner = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2]
    if (owner === undefined) throw new Error('no node of the cluster has the slot of the queue')
    return { host: owner[0] || asked.host, port: owner[1] }
  }
}

/**
 * Makes a function that finds the primary. It asks the seeds and the servers that they name, one
 * after the other.
 */
function createFindPrimary(seeds: readonly Endpoint[], access: RedisOptions, ask: Ask) {
  // When a failover happens, all seeds may be down.
  const known = new Map<string, Endpoint>()
  const note = (one: Endpoint) => known.set(`${one.host}:${one.port}`, one)
  seeds.forEach(note)

  async function askOnce(one: Endpoint): Promise<Endpoint> {
    const once = {
      retryStrategy: () => null,
      enableReadyCheck: false,
      connectTimeout: ASK_MS,
      commandTimeout: ASK_MS,
    }
    const redis = new Redis({ ...accessTo(one, access), ...once })
    let refusal: unknown
    redis.on('error', (error) => {
      refusal = error
    })
    try {
      const found = await ask(redis, one, note)
      if (found.host && found.port > 0 && found.port < 65_536) return found
      throw new Error('it names no address')
    } catch (error) {
      // A command's error says only that the connection was closed, and not why.
      throw refusal ?? error
    } finally {
      redis.disconnect()
    }
  }

  return async (
    isWanted: () => boolean,
    report: (error: Error) => void,
  ): Promise<Endpoint | undefined> => {
    while (isWanted()) {
      let last = ''
      let cause: unknown
      for (const [name, one] of [...known]) {
        // Moves this server to the end, so that the next connection asks another one first: a
        // frozen server does not know that it was replaced.
        known.delete(name)
        known.set(name, one)
        try {
          return await askOnce(one)
        } catch (error) {
          ;[last, cause] = [name, error]
        }
      }
      const why = cause instanceof Error ? cause.message : cause
      report(new Error(`nobody names the primary; asked last: ${last} (${why})`, { cause }))
      await delay(ASK_EVERY_MS, undefined, { ref: false })
    }
    return undefined
  }
}
