import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from '@sluice/local'
import type { TestScope } from '@sluice/test-support'

/** Reads the chunks of one connection and returns the part that may pass. */
export interface Gate {
  toServer(chunk: Buffer): Buffer
  toClient(chunk: Buffer): Buffer
}

/** A proxy on one fixed port, for a server that may restart on another one. */
interface TcpProxy {
  /** From now on forwards everything to this port. */
  open(serverPort: number): Promise<void>
  /**
   * Breaks all connections and refuses new ones, as the kernel does for a program that was killed.
   */
  shut(): Promise<void>
  /**
   * Forwards nothing but still accepts connections, as the kernel does for a program that is
   * stopped.
   */
  freeze(): void
  /** Forwards everything that was withheld, and everything new. */
  thaw(): void
  /** From now on delays everything that clients send by so many ms. */
  slow(ms: number): void
}

/** A proxy before one server that does not restart. */
export interface ServerProxy extends Omit<TcpProxy, 'open'> {
  /** The server's URL through the proxy. */
  url: string
  /** Ends what `shut` began. */
  reopen(): Promise<void>
}

/** Lets everything pass. */
export const OPEN_GATE: Gate = { toServer: (chunk) => chunk, toClient: (chunk) => chunk }

/**
 * @param port on 127.0.0.1, outside the range of outgoing connections: otherwise a client that
 * dials the closed port could reach itself.
 */
export function createTcpProxy(port: number, gate: () => Gate = () => OPEN_GATE): TcpProxy {
  const sockets = new Set<Socket>()
  let server: Server | undefined
  let frozen = false
  let delayMs = 0

  function carry(client: Socket, upstream: Socket): void {
    const { toServer, toClient } = gate()
    for (const [from, to, passing] of [
      [client, upstream, toServer],
      [upstream, client, toClient],
    ] as const) {
      sockets.add(from)
      from.setNoDelay(true)
      if (frozen) from.pause()
      from.on('data', (chunk) => {
        const forward = () => to.write(passing(chunk))
        // Timers of one delay end in their order.
        if (from === client && delayMs > 0) setTimeout(forward, delayMs)
        else forward()
      })
      from.on('error', () => {}) // 'close' follows
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  }

  return {
    async open(serverPort) {
      frozen = false
      server = createServer((client) => carry(client, connect(serverPort, '127.0.0.1')))
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    async shut() {
      const closed = new Promise((resolve) =>
        server === undefined ? resolve(undefined) : server.close(resolve),
      )
      // A socket that is being shut down can't be reset: its handle would stay open.
      for (const socket of sockets)
        socket.writableEnded ? socket.destroy() : socket.resetAndDestroy()
      await closed
    },
    freeze() {
      frozen = true
      for (const socket of sockets) socket.pause()
    },
    slow(ms) {
      delayMs = ms
    },
    thaw() {
      frozen = false
      for (const socket of sockets) socket.resume()
    },
  }
}

/** Puts a proxy before the server of this URL until the test ends. */
export async function openTcpProxy(
  t: TestScope,
  serverUrl: string,
  gate?: () => Gate,
): Promise<ServerProxy> {
  const url = new URL(serverUrl)
  const serverPort = Number(url.port)
  const port = await freePort()
  const { open, ...proxy } = createTcpProxy(port, gate)
  await open(serverPort)
  t.onTestFinished(proxy.shut)
  url.port = String(port)
  return { ...proxy, url: url.href, reopen: () => open(serverPort) }
}
