// Describes API keys: many as a table; one in whole, in one phrase, its end, and its limits.
import { type KeyLimits, type KeyRecord, keyState, shortKeyId } from '@sluice/store/keys'
import { describeSeconds } from '../option-values.ts'
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

/** The lines that say all of a key but the key itself. */
export function keyDetails({ id, role, tenant, name, expiresAt, limits }: KeyRecord): string[] {
  const rows = [
    ['  id', shortKeyId(id)],
    ['  name', name],
    ['  role', role],
    ['  tenant', role === 'operator' ? 'none: it handles the failed jobs of all tenants' : tenant],
    ['  expires', describeEnd(expiresAt)],
    ['  limits', role === 'operator' ? 'none: it posts nothing' : describeLimits(limits)],
  ]
  return tableLines(rows)
}

/** Which key it is, for a sentence. */
export function describeKey({ id, role, tenant, name }: KeyRecord): string {
  return `${shortKeyId(id)} of ${role === 'operator' ? 'an operator' : `tenant ${tenant}`}, named ${name}`
}

/** When a key ends, and how long that is from `now` (ms since 1970). */
export function describeEnd(expiresAt: Date | undefined, now = Date.now()): string {
  if (expiresAt === undefined) return 'never'
  return `${expiresAt.toISOString()} (in ${describeSeconds((expiresAt.getTime() - now) / 1_000)})`
}

/** How many quotes a key may post. */
export function describeLimits(limits: KeyLimits | undefined): string {
  if (limits === undefined) return 'as many quotes as all keys without limits of their own'
  return `${limits.quotesPerSecond} quotes a second and ${limits.burstQuotes} at once`
}
