// Probes whether MongoDB commits writes, by a document of its own in `writers`: the rights for it are those that workers need anyway.
import { randomBytes } from 'node:crypto'
import type { Db } from 'mongodb'
import { mongoCommands } from './mongodb.ts'

const PROBE = 'probe'
/** A store that hangs is noticed within this time, in ms. A store that is slow, and in which commands still end in time, must pass. */
const PROBE_MS = 5_000
/** A document must not exceed 16 MiB. */
const MAX_BYTES = 8 * 1024 * 1024

/**
 * Resolves when MongoDB has committed a majority write of so many bytes (of 8 MiB at most). Writes a small document first: while the store is away, probes
 * cost little, and a store that is nearly full still commits small writes.
 *
 * @throws if MongoDB refuses, can't be reached, or takes more than five seconds for a write.
 */
export async function probeStore(db: Db, bytes: number): Promise<void> {
  const commands = mongoCommands(db, PROBE_MS)
  const fill = async (size: number) => {
    // Random bytes can't be compressed.
    const values = { since: new Date(), filler: randomBytes(size) }
    const { n } = await commands.update('writers', [{ q: { _id: PROBE }, u: { $set: values } }])
    if (n === 0) await commands.insert('writers', [{ _id: PROBE, ...values }])
  }
  await fill(0)
  if (bytes === 0) return
  await fill(Math.min(bytes, MAX_BYTES))
  await fill(0)
}
