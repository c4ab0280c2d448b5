import { BSON, type Document } from 'mongodb'

// Messages of MongoDB's wire protocol: cuts a stream into them, and reads commands and replies.

/** Chooses the messages that may pass, of those that a chunk completes, or replaces them. */
export type SplitMessages = (chunk: Buffer, pass: (message: Buffer) => boolean | Buffer) => Buffer

/**
 * Cuts one direction of a connection into messages of MongoDB's wire protocol, each of which begins
 * with its length (32 bits, little-endian).
 */
export function splitMessages(): SplitMessages {
  let rest = Buffer.alloc(0)
  return (chunk, pass) => {
    rest = Buffer.concat([rest, chunk])
    const passing: Buffer[] = []
    while (rest.length >= 4 && rest.length >= rest.readInt32LE(0)) {
      const message = rest.subarray(0, rest.readInt32LE(0))
      rest = rest.subarray(message.length)
      const passed = pass(message)
      if (passed !== false) passing.push(passed === true ? message : passed)
    }
    return Buffer.concat(passing)
  }
}

const OP_MSG = 2013
/** After a header of 16 bytes and flags come sections. */
const SECTIONS_AT = 16 + 4
const CHECKSUM_PRESENT = 1

/** Whether a message of the wire protocol is a command, or the reply to one. */
export function isCommand(message: Buffer): boolean {
  return message.readInt32LE(12) === OP_MSG
}

/**
 * Reads a command, or a reply. A section of it is a document (kind 0), or a list of documents with
 * its name (kind 1).
 */
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

/** Returns the message with another document, as its only section. */
export function withDocument(message: Buffer, document: Document): Buffer {
  const flags = Buffer.alloc(4)
  const changed = Buffer.concat([
    message.subarray(0, 16),
    flags,
    Buffer.of(0),
    BSON.serialize(document),
  ])
  changed.writeInt32LE(changed.length)
  return changed
}
