import assert from 'node:assert/strict'
import { deletedBy } from '@sluice/store'
import { inSource } from '@sluice/store/ids'
import { stampOf } from '../support/visible.ts'
import type { MemoryDatabase } from './memory-database.ts'
import type { Simulation } from './simulation.ts'

// The law of positions: in the end each quote's position is the smallest of all accepted requests
// (`stored-law.ts`). On the way it only gets smaller, unless its source is deleted.

/** Holds after every write. Remembers the positions in `seen`. */
export function assertPositions({ database }: Simulation, seen: Map<string, string>): void {
  for (const { _id, sourceId, position } of database.all('quotes')) {
    const before = seen.get(_id)
    if (before !== undefined && position > before)
      assert(
        stampOf(before) <= deletedUpTo(database, sourceId, _id),
        `${_id} lost its position ${before}`,
      )
    seen.set(_id, position)
  }
}

/** Returns the stamp of the deletion of a source, or of one of its quotes, 0 without one. */
export function deletedUpTo(database: MemoryDatabase, sourceId: string, quoteId = ''): number {
  const source = database.all('sources').find(({ _id }) => _id === sourceId)
  const { stamp, ofQuotes } = source === undefined ? { stamp: 0 } : deletedBy('acme', source)
  return Math.max(stamp, ofQuotes?.[inSource(quoteId)] ?? 0)
}
