// Shows API keys as a table for people.
import { isLive, type KeyRecord } from '@sluice/store/keys'

/** How many digits of an id are shown: enough to distinguish keys, and to name one in a command. */
export const SHOWN_ID = 12

const COLUMNS = ['ID', 'TENANT', 'NAME', 'STATE', 'CREATED', 'LAST USED', 'EXPIRES']

/** Whether a key works; `replaced` works until its overlap ends. */
export function keyState(record: KeyRecord, now: number): 'live' | 'replaced' | 'expired' | 'revoked' {
  if (record.revokedAt !== undefined) return 'revoked'
  if (!isLive(record, now)) return 'expired'
  return record.replacedBy === undefined ? 'live' : 'replaced'
}

/** The lines of a table of keys, one per key under a heading. */
export function keyTable(records: readonly KeyRecord[], now = Date.now()): string[] {
  const rows = [COLUMNS, ...records.map((record) => cells(record, now))]
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

function cells(record: KeyRecord, now: number): string[] {
  const { id, tenant, name, createdAt, lastUsedAt, expiresAt } = record
  return [id.slice(0, SHOWN_ID), tenant, name, keyState(record, now), ...[createdAt, lastUsedAt, expiresAt].map(moment)]
}

function moment(at: Date | undefined): string {
  return at === undefined ? '-' : at.toISOString().slice(0, 16).concat('Z')
}
