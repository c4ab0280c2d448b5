// Shows API keys as a table for people.
import { type KeyRecord, keyState, shortKeyId } from '@sluice/store/keys'
import { moment, tableLines } from '../table.ts'

const COLUMNS = ['ID', 'ROLE', 'TENANT', 'NAME', 'STATE', 'QUOTES/S', 'BURST', 'CREATED', 'LAST USED', 'EXPIRES']

/** The lines of a table of keys, one per key under a heading. */
export function keyTable(records: readonly KeyRecord[], now = Date.now()): string[] {
  return tableLines([COLUMNS, ...records.map((record) => cells(record, now))])
}

function cells(record: KeyRecord, now: number): string[] {
  const { id, role, tenant, name, limits, createdAt, lastUsedAt, expiresAt } = record
  const counts = [limits?.quotesPerSecond, limits?.burstQuotes].map((count) => count?.toString() ?? '-')
  const moments = [createdAt, lastUsedAt, expiresAt].map(moment)
  return [shortKeyId(id), role, tenant || '-', name, keyState(record, now), ...counts, ...moments]
}
