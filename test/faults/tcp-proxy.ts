import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** Looks at what comes on one connection, and gives what of it may pass. */
export interface Gate {
  toServer(chunk: Buffer): Buffer
  toClient(chunk: Buffer): Buffer
}

/** Stands on one fixed port before a server that may go away and come back elsewhere. */
export interface TcpProxy {
  /** Lets everything through to this port from now on. */
  open(serverPort: number): Promise<void>
  /** Breaks all connections and refuses new ones, as the kernel does for a program that was killed. */
  shut(): Promise<void>
  /** Lets nothing through, though connections are still taken: as the kernel does for a program that is stopped. */
  freeze(): void
  /** Lets everything through again that was held back. */
  thaw(): void
}

const OPEN_GATE: Gate = { toServer: (chunk) => chunk, toClient: (chunk) => chunk }

/** @param port on 127.0.0.1, and not of those that outgoing connections get: a client that dials it while it is shut could else reach itself. */
export function createTcpProxy(port: number, gate: () => Gate = () => OPEN_GATE): TcpProxy {
  const sockets = new Set<Socket>()
  let server: Server | undefined
  let frozen = false

  function carry(client: Socket, upstream: Socket): void {
    const { toServer, toClient } = gate()
    for (const [from, to, passing] of [
      [client, upstream, toServer],
      [upstream, client, toClient],
    ] as const) {
      sockets.add(from)
      from.setNoDelay(true)
      if (frozen) from.pause()
      from.on('data', (chunk) => to.write(passing(chunk)))
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
      const closed = new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)))
      for (const socket of sockets) socket.resetAndDestroy()
      await closed
    },
    freeze() {
      frozen = true
      for (const socket of sockets) socket.pause()
    },
    thaw() {
      frozen = false
      for (const socket of sockets) socket.resume()
    },
  }
}
