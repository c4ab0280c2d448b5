import type { Document } from 'mongodb'
import { commandOf, isCommand, splitMessages } from './mongodb-messages.ts'
import { type Gate, OPEN_GATE } from './tcp-proxy.ts'

/** The commands that a process sent to MongoDB, as the server gets them. */
export interface RecordedCommands {
  gate: () => Gate
  commands: Document[]
}

/** Records the commands of all connections of a process (MongoDB's wire protocol, OP_MSG). */
export function recordCommands(): RecordedCommands {
  const commands: Document[] = []
  return {
    commands,
    gate() {
      const split = splitMessages()
      const record = (message: Buffer) => {
        if (isCommand(message)) commands.push(commandOf(message))
        return true
      }
      return { ...OPEN_GATE, toServer: (chunk) => split(chunk, record) }
    },
  }
}
