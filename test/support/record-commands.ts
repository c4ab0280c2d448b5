import { BSON, type Document } from 'mongodb'
import { splitMessages } from '../faults/split-messages.ts'
import { type Gate, OPEN_GATE } from './tcp-proxy.ts'

/** The commands that a process sent to MongoDB, as the server gets them. */
export interface RecordedCommands {
  gate: () => Gate
  commands: Document[]
}

const OP_MSG = 2013
/** After a header of 16 bytes and flags come sections. */
const SECTIONS_AT = 16 + 4
const CHECKSUM_PRESENT = 1

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

/** Whether a message of the wire protocol is a command, or the reply to one. */
export function isCommand(message: Buffer): boolean {
  return message.readInt32LE(12) === OP_MSG
}

/** Reads a command, or a reply. A section of it is a document (kind 0), or a list of documents with its name (kind 1). */
export function commandOf(message: Buffer): Document {
  const command: Document = {}
  const end = message.length - ((message.readInt32LE(16) & CHECKSUM_PRESENT) === 1 ? 4 : 0)
  for (let at = SECTIONS_AT; at < end; ) {
    const size = message.readInt32LE(at + 1)
    const section = message.subarray(at + 1, at + 1 + size)
    if (message[at] === 0) Object.assign(command, BSON.deserialize(section))
    else Object.assign(command, sequenceOf(section))
    at += 1 + size
  }
  return command
}

function sequenceOf(section: Buffer): Document {
  const nameEnd = section.indexOf(0, 4)
  const documents: Document[] = []
  for (let at = nameEnd + 1; at < section.length; at += section.readInt32LE(at))
    documents.push(BSON.deserialize(section.subarray(at, at + section.readInt32LE(at))))
  return { [section.toString('utf8', 4, nameEnd)]: documents }
}
