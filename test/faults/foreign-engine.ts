import type { Document } from 'mongodb'
import { commandOf, isCommand, splitMessages, withDocument } from '../support/mongodb-messages.ts'
import type { Gate } from '../support/tcp-proxy.ts'

/** How an engine that speaks MongoDB's protocol fails a command as a whole. */
export interface CommandFailure {
  code: number
  errmsg: string
  /** Whether the statement at this position of a write takes effect all the same. */
  takesEffect(at: number): boolean
}

/** The fields that have the documents or statements of a write. */
const STATEMENTS = ['documents', 'updates']

/**
 * Makes the gate of a proxy that fails commands as such an engine does: connections stay open, and
 * statements of the command may have taken effect.
 *
 * @param fail returns how a command is to fail, if it is.
 */
export function failCommands(fail: (command: Document) => CommandFailure | undefined): () => Gate {
  return () => {
    const [toServer, toClient] = [splitMessages(), splitMessages()]
    const failing = new Map<number, CommandFailure>()
    return {
      toServer: (chunk) =>
        toServer(chunk, (message) => {
          if (!isCommand(message)) return true
          const command = commandOf(message)
          const failure = fail(command)
          if (failure === undefined) return true
          failing.set(message.readInt32LE(4), failure)
          return withDocument(message, withEffect(command, failure))
        }),
      toClient: (chunk) =>
        toClient(chunk, (message) => {
          const request = message.readInt32LE(8)
          const failure = failing.get(request)
          if (failure === undefined) return true
          failing.delete(request)
          return withDocument(message, { ok: 0, code: failure.code, errmsg: failure.errmsg })
        }),
    }
  }
}

/** The command with the statements that take effect. A command without one becomes a ping. */
function withEffect(command: Document, { takesEffect }: CommandFailure): Document {
  const name = STATEMENTS.find((one) => Array.isArray(command[one]))
  const left =
    name === undefined ? [] : command[name].filter((_: unknown, at: number) => takesEffect(at))
  return name === undefined || left.length === 0
    ? { ping: 1, $db: command.$db }
    : { ...command, [name]: left }
}

/** Whether it is a command on documents, and not one that a front end answers without its store. */
export function needsStore(command: Document): boolean {
  return ['insert', 'update', 'find', 'aggregate'].some((name) => name in command)
}
