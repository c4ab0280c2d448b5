import { AmbiguousKeyError, UnknownKeyError } from './key-errors.ts'
import { isLive, type KeyRecord } from './key-record.ts'

// Shorter beginnings could be meant as names.
const ID_PREFIX = /^[0-9a-f]{6,64}$/

/**
 * The one live key that an operator means by its name or by the first six or more digits of its id; a name goes first.
 * Throws UnknownKeyError for none, AmbiguousKeyError for several.
 */
export function pickKey(records: readonly KeyRecord[], reference: string, now: number): KeyRecord {
  const live = records.filter((record) => isLive(record, now))
  const named = live.filter(({ name }) => name === reference)
  const meant = named.length > 0 ? named : withIdPrefix(live, reference)
  const [first, ...others] = meant
  if (first === undefined) throw new UnknownKeyError(reference)
  if (others.length > 0) throw new AmbiguousKeyError(reference, meant)
  return first
}

function withIdPrefix(records: readonly KeyRecord[], reference: string): KeyRecord[] {
  if (!ID_PREFIX.test(reference)) return []
  return records.filter(({ id }) => id.startsWith(reference))
}
