import { commandOf, isCommand, splitMessages } from '../support/mongodb-messages.ts'
import type { Gate } from '../support/tcp-proxy.ts'

/**
 * Lets a process's writes through until the n-th is done. Afterwards it lets nothing through:
 * neither that write's answer nor any later command.
 */
export interface WriteStop {
  gate: () => Gate
  /**
   * Resolves when the n-th write is done. For n = 0, resolves when the first write arrives and is
   * withheld.
   */
  reached: Promise<void>
}

const WRITES = new Set(['insert', 'update', 'delete'])

/**
 * Counts the write commands of all connections of a process, so that it can be stopped between any
 * two of them.
 */
export function stopAfterWrites(n: number): WriteStop {
  const reached = Promise.withResolvers<void>()
  let writes = 0
  let last: number | undefined
  let shut = false

  function gate(): Gate {
    const splitToServer = splitMessages()
    const splitToClient = splitMessages()
    return {
      toServer: (chunk) => splitToServer(chunk, mayGo),
      toClient: (chunk) => splitToClient(chunk, mayReturn),
    }
  }
  function mayGo(message: Buffer): boolean {
    if (shut || !isWrite(message)) return !shut
    writes += 1
    if (writes === n) last = message.readInt32LE(4)
    return writes <= n || stop()
  }
  function mayReturn(message: Buffer): boolean {
    // The answer names the request; ids are unique in a process, whatever the connection.
    return message.readInt32LE(8) === last ? stop() : !shut
  }
  function stop(): false {
    shut = true
    reached.resolve()
    return false
  }
  return { gate, reached: reached.promise }
}

function isWrite(message: Buffer): boolean {
  if (!isCommand(message)) return false
  const [name = ''] = Object.keys(commandOf(message))
  return WRITES.has(name)
}
