import { once } from 'node:events'
import { connect, createServer } from 'node:net'

// Gives test files of a run turns, so that one kind of them runs one file at a time while others run beside it. A connection is a place in the line:
// its process has its turn once it reads a byte, and gives it back by closing the connection, however it ends.

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
