// Passes on the requests of each connection, and bounds the pipelined ones: those that are sent before the answer to
// the one before.
import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { overloaded, type ProblemError } from '../request/problem-error.ts'
import type { Connection, Connections } from './bound-connections.ts'

/** The last of this number of pipelined requests closes its connection. */
const PIPELINED = 16

/**
 * Makes the listener to the requests of a server.
 *
 * @param listener gets the requests, one at a time of each connection.
 * @param refuse answers with a problem, and closes the connection.
 */
export function passRequests(
  listener: RequestListener,
  refuse: (socket: Socket, problem: ProblemError) => void,
  connections: Connections,
): RequestListener {
  const { open, idle, later, unparsed, maxUnparsedBytes, closeSoon } = connections

  function onAnswered(connection: Connection): void {
    const { socket, feed, isSurplus } = connection
    if (feed.hasMore()) return void later(() => socket.resume())
    connection.pipelined = 0
    socket.resume()
    if (connections.isClosing) return void socket.destroySoon()
    if (!socket.writable || isSurplus) return
    connection.idleSince = performance.now()
    connection.idleBytes = socket.bytesRead
    idle.add(connection)
  }

  return (request, response) => {
    const { socket } = request
    const connection = open.get(socket)
    // The parser never gets a request while another one is in progress, if it agrees where that one ends.
    if (connection === undefined || connection.feed.responseInProgress()) return void socket.destroy()
    const { feed } = connection
    connections.lastRequestAt = performance.now()
    feed.begin(response, () => onAnswered(connection))
    idle.delete(connection)
    connection.pipelined += 1
    if (connection.pipelined === PIPELINED || (unparsed.bytes > maxUnparsedBytes && feed.hasMore())) {
      response.setHeader('connection', 'close')
      // If more was sent, Node would reset the connection, and with it answers on their way.
      socket.destroySoon = () => closeSoon(socket)
    }
    if (connection.isSurplus) refuse(socket, overloaded())
    else listener(request, response)
  }
}
