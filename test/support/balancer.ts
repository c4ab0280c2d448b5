// A load balancer as operators run it: a TCP proxy before the replicas that follows their
// readiness.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { StartedProcess, TestScope } from '@sluice/test-support'
import { adminStatus } from './admin-status.ts'

/** A replica of the API behind the balancer. */
export interface Backend {
  api: StartedProcess
  url: string
}

export interface Balancer {
  url: string
  /** Resolves when the replica is ready. From then on it gets connections. */
  add(backend: Backend): Promise<void>
  /**
   * The replica gets connections for so many ms more, whether it is ready or not. Then it gets
   * none.
   */
  removeAfter(backend: Backend, ms: number): Promise<void>
}

/**
 * How often the balancer asks each replica, in ms. Until it notices that one is not ready, that one
 * still gets connections.
 */
const ASK_EVERY_MS = 100
/**
 * A replica that does not answer for so long is not ready, in ms. A busy machine's may need a
 * second.
 */
const ANSWER_MS = 3_000

/**
 * Starts a balancer without replicas. It gives new connections to the ready replicas in turn, and
 * tries the next one if one refuses. It never cuts a connection.
 */
export async function startBalancer(t: TestScope): Promise<Balancer> {
  const leaving = new Set<Backend>()
  const ready = new Set<Backend>()
  let turn = 0
  let isOver = false
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (client) => {
    keep(client)
    void carry(client)
  })

  async function ask(backend: Backend): Promise<void> {
    const status = await adminStatus(backend.api, '/readyz', ANSWER_MS)
    if (leaving.has(backend)) return
    if (status === 200) ready.add(backend)
    else ready.delete(backend)
  }
  /** Each replica is asked on its own: one that is slow must not hide that another one stops. */
  async function watch(backend: Backend): Promise<void> {
    while (!isOver && !leaving.has(backend)) {
      await pause(ASK_EVERY_MS)
      await ask(backend)
    }
  }
  async function carry(client: Socket): Promise<void> {
    const upstream = await connectToOne()
    if (upstream === undefined) return void client.resetAndDestroy()
    join(client, upstream)
    join(upstream, client)
  }
  async function connectToOne(): Promise<Socket | undefined> {
    const all = [...ready]
    const first = turn++ % all.length
    for (const backend of [...all.slice(first), ...all.slice(0, first)]) {
      const socket = await connected(Number(new URL(backend.url).port))
      // As in Kubernetes, nobody tries another one while a replica that is gone counts as there.
      if (socket !== undefined || leaving.has(backend)) return socket
    }
    return undefined
  }
  function join(from: Socket, to: Socket): void {
    keep(from)
    from.pipe(to)
    // A reset on one side must reach the other one as a reset.
    from.on('close', (failed) => (failed ? to.resetAndDestroy() : to.end()))
  }
  function keep(socket: Socket): void {
    if (sockets.has(socket)) return
    sockets.add(socket.setNoDelay(true))
    socket.on('error', () => {}) // 'close' follows
    socket.on('close', () => sockets.delete(socket))
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.onTestFinished(async () => {
    isOver = true
    for (const socket of sockets) socket.destroy()
    await new Promise((closed) => server.close(closed))
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    async add(backend) {
      while (!ready.has(backend)) await ask(backend)
      void watch(backend)
    },
    async removeAfter(backend, ms) {
      leaving.add(backend)
      await pause(ms)
      ready.delete(backend)
    },
  }
}

/** Resolves with undefined if nothing listens there. */
async function connected(port: number): Promise<Socket | undefined> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  try {
    await once(socket, 'connect')
    return socket
  } catch {
    return undefined
  }
}
