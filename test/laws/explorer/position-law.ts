import assert from 'node:assert/strict'
import type { Simulation } from './simulation.ts'

// The law of positions: in the end each quote's position is the smallest of all accepted requests
// (`stored-law.ts`). On the way it only gets smaller.

/** Holds after every write. Remembers the positions in `seen`. */
export function assertPositions({ database }: Simulation, seen: Map<string, string>): void {
  for (const { _id, position } of database.all('quotes')) {
    const before = seen.get(_id)
    assert(before === undefined || position <= before, `${_id} lost its position ${before}`)
    seen.set(_id, position)
  }
}
