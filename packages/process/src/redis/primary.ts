// Leads all connections of a process to one server: the primary that has the queue. `REDIS_URL` names it, or Sentinels
// that know it, or nodes of a cluster.
import { connect as connectTcp, isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { AbstractConnector, type RedisOptions as AllOptions, Redis } from 'ioredis'

/** Where a queue is. */
export interface QueueAddress {
  /** `redis://HOST:PORT`, `redis+sentinel://HOST,HOST/NAME` or `redis+cluster://HOST,HOST`. */
  redisUrl: string
  queue: string
}

/** A server that the process has left is refused for this time: after a failover, there may be two primaries. */
const LEFT_MS = 10_000
/** A peer that does not close a connection that we ended is cut off after this time. */
const DISCONNECT_MS = 200

/**
 * Sentinels or nodes are asked for the primary one after the other, each for at most ASK_MS. After the last one, a
 * pause of ASK_EVERY_MS.
 */
const ASK_MS = 500
const ASK_EVERY_MS = 500
/** The pause before we connect again to a Sentinel, which announces failovers. */
const RECONNECT_MS = 10_000

type OnError = Parameters<AbstractConnector['connect']>[0]
type Stream = Awaited<ReturnType<AbstractConnector['connect']>>
type Info = Readonly<Record<string, string | undefined>>
/** Without `replyMapping`, which would change the type of all commands. */
type RedisOptions = Omit<AllOptions, 'replyMapping'>
type Endpoint = { host: string; port: number }

/** The server of each `openPrimary`, by its `Connector` class, which a connection shares with its duplicates. */
const servers = new WeakMap<object, OneServer>()

/** The server that all connections of a process lead to. */
interface Server {
  /**
   * '' before the first connection is ready, or if the server hides its id. A server that is promoted again gets
   * another id, because a promotion changes `master_replid`.
   */
  id: string
  /** When a connection first met the server, on the monotonic clock, in ms. */
  since: number
}

/** Returns the server that a connection of `openPrimary`, and all of its duplicates, lead to. */
export function serverOf(redis: Redis): Server {
  return servers.get(redis.options.Connector ?? redis)?.current() ?? { id: '', since: 0 }
}

/** Opens a connection to the primary. It and all of its duplicates lead to the same server, also after a failover. */
export function openPrimary({ redisUrl, queue }: QueueAddress, options: RedisOptions): Redis {
  const server = createOneServer()
  const { kind, endpoints, access, askAccess, name } = readRedisUrl(redisUrl)
  const findPrimary =
    kind === 'server'
      ? async () => endpoints[0]
      : createFindPrimary(endpoints, askAccess, kind === 'sentinel' ? askSentinel(name) : askNode(`{${queue}}`))

  class PrimaryConnector extends AbstractConnector {
    private onError: OnError = () => {}
    private unwatch: (() => void) | undefined

    constructor() {
      super(DISCONNECT_MS)
    }

    async connect(onError: OnError): Promise<Stream> {
      this.connecting = true
      this.onError = onError
      if (kind === 'sentinel') this.unwatch ??= watchFailovers(endpoints, askAccess, name, server.keepOnly)
      const endpoint = await findPrimary(onError, () => this.connecting)
      if (endpoint === undefined || !this.connecting) throw new Error('Connection is closed.')
      const { tls } = accessTo(endpoint, access)
      this.stream = tls ? connectTls({ ...tls, ...endpoint }) : connectTcp(endpoint)
      this.stream.once('error', (error) => {
        this.firstError = error
      })
      return server.track(this.stream, endpoint)
    }

    // ioredis (6.0.0) emits no `end` if the connection is closed while it waits to connect again.
    override disconnect(): void {
      super.disconnect()
      this.unwatch?.()
      this.unwatch = undefined
    }

    override check(info: Info): boolean {
      if (info.role !== 'slave') return server.admit(this.stream, info)
      this.onError('error', new Error('this Redis is a replica, which takes no jobs'))
      return false
    }
  }

  servers.set(PrimaryConnector, server)
  return new Redis({ ...options, ...access, Connector: PrimaryConnector })
}

type OneServer = ReturnType<typeof createOneServer>

/** Keeps all connections of a process on one server: the newest that one of them has met. */
function createOneServer() {
  const streams = new Map<Stream, Endpoint & { id: string }>()
  const left = new Map<string, number>()
  let current: Server = { id: '', since: 0 }
  return {
    current: () => current,
    track(stream: Stream, endpoint: Endpoint): Stream {
      streams.set(stream, { ...endpoint, id: '' })
      return stream.once('close', () => streams.delete(stream))
    },
    /**
     * Closes all connections to other addresses, so that they connect again. Hosts are compared as text, because
     * Sentinels may announce names instead of addresses.
     */
    keepOnly(host: string, port: number): void {
      for (const [stream, to] of streams) if (to.port !== port || to.host !== host) stream.destroy()
    },
    /** Returns whether a connection may stay. If its server is new, closes all connections to other servers. */
    admit(stream: Stream, info: Info): boolean {
      // Some providers hide these ids.
      const found = [info.run_id, info.master_replid].filter(Boolean).join('.')
      const now = performance.now()
      if (found === '') return true
      if (now - (left.get(found) ?? Number.NEGATIVE_INFINITY) < LEFT_MS) return false
      const met = streams.get(stream)
      if (met) met.id = found
      if (found === current.id) return true
      left.set(current.id, now).delete(found)
      current = { id: found, since: now }
      for (const [other, { id }] of streams) if (id !== found) other.destroy()
      return true
    },
  }
}

/** Reads a URL, which is valid: see the setting `REDIS_URL`. Sentinel's own credentials stand in its query. */
export function readRedisUrl(url: string) {
  const [, scheme, kind = 'server', username, password, hosts = '', rest = ''] =
    /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^:@?]*)(?::([^?]*))?@)?([^@/?]+)(.*)$/.exec(url) ?? []
  // In the query, a plus is no space and a number sign begins no fragment: passwords may contain both.
  const { pathname, searchParams } = new URL(`redis://hosts${rest.replaceAll('+', '%2B').replaceAll('#', '%23')}`)
  const [, first = '', second = ''] = pathname.split('/')
  const [name, db] = kind === 'sentinel' ? [first, second] : ['', first]
  const accessBy = (user?: string | null, secret?: string | null): RedisOptions => ({
    ...(user && { username: user }),
    ...(secret && { password: secret }),
    ...(scheme === 'rediss' && { tls: {} }),
  })
  const own = accessBy(username && decodeURIComponent(username), password && decodeURIComponent(password))
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
      kind === 'sentinel' ? accessBy(searchParams.get('sentinelUsername'), searchParams.get('sentinelPassword')) : own,
  }
}

/** Node sends the server's name (SNI, RFC 6066) only if `servername` has it. An IP address is not a name. */
function accessTo({ host, port }: Endpoint, access: RedisOptions): RedisOptions {
  return { ...access, host, port, ...(access.tls && { tls: { servername: isIP(host) > 0 ? '' : host } }) }
}

/**
 * Calls `onPrimary` when a Sentinel announces a new primary, until the returned function is called. Connections to a
 * frozen primary are silent, so they do not show that it was replaced. ioredis (6.0.0) has a `failoverDetector`, but it
 * closes a connection for good if the connection is just reconnecting.
 */
function watchFailovers(
  sentinels: readonly Endpoint[],
  access: RedisOptions,
  name: string,
  onPrimary: (host: string, port: number) => void,
): () => void {
  const watchers = sentinels.map((sentinel) => {
    const always = { retryStrategy: () => RECONNECT_MS, maxRetriesPerRequest: null, enableReadyCheck: false }
    const watcher = new Redis({ ...accessTo(sentinel, access), ...always }).on('error', () => {})
    watcher.subscribe('+switch-master').catch(() => {}) // It was closed meanwhile.
    return watcher.on('message', (_, text) => {
      const [of, , , host = '', port] = text.split(' ')
      if (of === name) onPrimary(host, Number(port))
    })
  })
  return () => {
    for (const watcher of watchers) watcher.disconnect()
  }
}

/** Asks a Sentinel or a node of a cluster for the primary, and notes other servers that can be asked. */
type Ask = (redis: Redis, asked: Endpoint, note: (other: Endpoint) => void) => Promise<Endpoint>

function askSentinel(name: string): Ask {
  const textsIn = (reply: unknown) => (Array.isArray(reply) ? reply.map(String) : [])
  return async (redis, _, note) => {
    const [address, others] = await Promise.all([
      redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name),
      redis.call('SENTINEL', 'SENTINELS', name),
    ])
    for (const other of Array.isArray(others) ? others.map(textsIn) : []) {
      const [host = '', port, flags] = ['ip', 'port', 'flags'].map((field) => other[other.indexOf(field) + 1])
      if (!flags?.includes('disconnected')) note({ host, port: Number(port) })
    }
    const [host = '', port] = textsIn(address)
    return { host, port: Number(port) }
  }
}

function askNode(key: string): Ask {
  return async (redis, asked, note) => {
    const [slot, ranges] = await Promise.all([redis.cluster('KEYSLOT', key), redis.cluster('SLOTS')])
    // A node that does not know its own address replies an empty one.
    for (const [, , ...nodes] of ranges) for (const [host, port] of nodes) note({ host: host || asked.host, port })
    const owner = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2]
    if (owner === undefined) throw new Error('no node of the cluster has the slot of the queue')
    return { host: owner[0] || asked.host, port: owner[1] }
  }
}

/** Makes a function that finds the primary. It asks the seeds, and the servers that they name, one after the other. */
function createFindPrimary(seeds: readonly Endpoint[], access: RedisOptions, ask: Ask) {
  // By the time of a failover, all seeds may be gone.
  const known = new Map<string, Endpoint>()
  const note = (one: Endpoint) => known.set(`${one.host}:${one.port}`, one)
  seeds.forEach(note)

  async function askOnce(one: Endpoint): Promise<Endpoint> {
    const once = { retryStrategy: () => null, enableReadyCheck: false, connectTimeout: ASK_MS, commandTimeout: ASK_MS }
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
      // The error of a command says that the connection was closed, and not why.
      throw refusal ?? error
    } finally {
      redis.disconnect()
    }
  }

  return async (onError: OnError, isWanted: () => boolean): Promise<Endpoint | undefined> => {
    while (isWanted()) {
      let last = ''
      for (const [name, one] of [...known]) {
        // The server that is asked goes last, so that the next connection asks another one first: a server that was
        // frozen does not know yet that it was replaced.
        known.delete(name)
        known.set(name, one)
        try {
          return await askOnce(one)
        } catch (error) {
          last = `${name} (${error instanceof Error ? error.message : error})`
        }
      }
      onError('error', new Error(`nobody names the primary; asked last: ${last}`))
      await delay(ASK_EVERY_MS, undefined, { ref: false })
    }
    return undefined
  }
}
