import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that Linux and macOS give to outgoing connections: a client that dials a dead server's port over and over could else be given that very port. */
const lowest = 20_000
const highest = 32_000
const tries = 100

/** A TCP port on 127.0.0.1 that nobody listens on now. Throws where none could be found. */
export async function freePort(): Promise<number> {
  for (let i = 0; i < tries; i++) {
    const port = randomInt(lowest, highest)
    if (await isPortFree(port)) return port
  }
  throw new Error(`None of ${tries} ports tried between ${lowest} and ${highest} is free`)
}

/** Whether a server could listen on this TCP port of `host` now. */
export async function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  const server = createServer()
  try {
    server.listen({ port, host, exclusive: true })
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}
