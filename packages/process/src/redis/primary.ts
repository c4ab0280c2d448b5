// Leads all connections of a process to the same server: the primary that has the queue.
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { AbstractConnector, Redis } from 'ioredis'
import {
  accessTo,
  createPrimaryFinder,
  type Endpoint,
  type QueueAddress,
  type RedisOptions,
} from './find-primary.ts'

/**
 * After the process has left a server, it refuses that server for this time, because there may be
 * two primaries after a failover.
 */
const LEFT_MS = 10_000
/**
 * If a peer does not close a connection that we have ended, the connection is cut after this time.
 */
const DISCONNECT_MS = 200

type OnError = Parameters<AbstractConnector['connect']>[0]
type Stream = Awaited<ReturnType<AbstractConnector['connect']>>
type Info = Readonly<Record<string, string | undefined>>

/**
 * The server of each `openPrimary`, by its `Connector` class, which a connection shares with its
 * duplicates.
 */
const servers = new WeakMap<object, OneServer>()

/** The server to which all connections of a process lead. */
interface Server {
  /**
   * Empty before the first connection, and if the server hides its id. A promotion changes the id.
   */
  id: string
  /** When a connection first reached the server, on the monotonic clock, in ms. */
  since: number
}

/** Returns the server to which a connection of `openPrimary` and all of its duplicates lead. */
export function serverOf(redis: Redis): Server {
  return servers.get(redis.options.Connector ?? redis)?.current() ?? { id: '', since: 0 }
}

/**
 * Opens a connection to the primary. The connection and all of its duplicates lead to the same
 * server, also after a failover.
 */
export function openPrimary(address: QueueAddress, options: RedisOptions): Redis {
  const server = createOneServer()
  const { access, findPrimary, watchFailovers } = createPrimaryFinder(address)

  class PrimaryConnector extends AbstractConnector {
    private onError: OnError = () => {}
    private unwatch: (() => void) | undefined

    constructor() {
      super(DISCONNECT_MS)
    }

    async connect(onError: OnError): Promise<Stream> {
      this.connecting = true
      this.onError = onError
      this.unwatch ??= watchFailovers?.(server.keepOnly)
      const isWanted = () => this.connecting
      const endpoint = await findPrimary(isWanted, (error) => onError('error', error))
      if (endpoint === undefined || !this.connecting) throw new Error('Connection is closed.')
      const { tls } = accessTo(endpoint, access)
      this.stream = tls ? connectTls({ ...tls, ...endpoint }) : connectTcp(endpoint)
      this.stream.once('error', (error) => {
        this.firstError = error
      })
      // Redis does this, for example, above its client-output-buffer-limit.
      this.stream.once('end', () => {
        if (this.connecting) onError('error', new Error('Redis closed the connection'))
      })
      return server.track(this.stream, endpoint)
    }

    // End the watch here, because ioredis (6.0.0) does not emit `end` if the connection is closed
    // while it waits to reconnect.
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

/**
 * Keeps all connections of a process on one server: the newest one that any of them has reached.
 */
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
     * Closes all connections to other addresses. Compares hosts as text, because Sentinels may
     * announce names.
     */
    keepOnly(host: string, port: number): void {
      for (const [stream, to] of streams) if (to.port !== port || to.host !== host) stream.destroy()
    },
    /**
     * Returns whether a connection may stay. If it leads to a new server, closes all connections to
     * other servers.
     */
    admit(stream: Stream, info: Info): boolean {
      // Some providers of Redis hide these ids.
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
