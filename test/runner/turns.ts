import { once } from 'node:events'
import { connect, createServer } from 'node:net'

// A lock between the processes of a test run, so that one kind of test runs one file at a time while others run beside it. A process connects to wait
// for its turn, reads a byte when its turn begins, and ends its turn by closing the connection. The system closes it where the process is killed.

/** Begins to give turns on a socket with this path. Returns how to stop. */
export function giveTurns(path: string): () => void {
  let last: Promise<unknown> = Promise.resolve()
  const server = createServer((socket) => {
    socket.on('error', () => {})
    const closed = once(socket.resume(), 'close')
    const turn = last.then(() => socket.write('.'))
    last = turn.then(() => closed)
  })
  server.listen(path).unref()
  return () => void server.close()
}

/** Waits for a turn. Returns how to give it back. */
export async function takeTurn(path: string): Promise<() => void> {
  const socket = connect(path)
  await once(socket, 'data')
  return () => void socket.destroy()
}
