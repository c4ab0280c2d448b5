/** Chooses the messages that may pass, of those that a chunk completes. */
export type SplitMessages = (chunk: Buffer, mayPass: (message: Buffer) => boolean) => Buffer

/**
 * Cuts one direction of a connection into messages of MongoDB's wire protocol, each of which begins with its length (32
 * bits, little-endian).
 */
export function splitMessages(): SplitMessages {
  let rest = Buffer.alloc(0)
  return (chunk, mayPass) => {
    rest = Buffer.concat([rest, chunk])
    const passing: Buffer[] = []
    while (rest.length >= 4 && rest.length >= rest.readInt32LE(0)) {
      const message = rest.subarray(0, rest.readInt32LE(0))
      rest = rest.subarray(message.length)
      if (mayPass(message)) passing.push(message)
    }
    return Buffer.concat(passing)
  }
}
