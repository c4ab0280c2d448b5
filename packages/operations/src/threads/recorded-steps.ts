// Leaves the record of an operation that deletes or erases, before it removes anything: its jobs
// leave none. A record names what is asked for, not what is found, so it stays small.
import type { DeletionRecords } from '@sluice/boot/deletion-records'
import type { DeletionRecord } from '@sluice/contract'
import { readRedisTime } from '@sluice/process/redis'
import { sourceIdOf } from '@sluice/store/ids'
import { readKey } from '@sluice/store/suppressions'
import type { OpenOperation, StepDone } from '../failed/operations.ts'
import { type RetentionDeps, readRules } from './retention.ts'

type TakeStep = (open: OpenOperation) => Promise<StepDone>
type RecordDeps = Pick<RetentionDeps, 'redis' | 'db' | 'retainDays'> & {
  records: Pick<DeletionRecords, 'write'>
}

/**
 * Makes steps that are recorded: at the beginning, and at the end with the count.
 * Retention, which finds nothing on most days, is recorded when it has found something.
 */
export function createRecordedStep(deps: RecordDeps, takeStep: TakeStep): TakeStep {
  return async (open) => {
    const { kind, state, done } = open.operation
    if (state === 'waiting' && kind !== 'retain') await record(deps, open)
    const step = await takeStep(open)
    if (kind === 'retain' && step.found) await record(deps, open)
    if (kind !== 'retain' && step.isLast) await record(deps, open, done + step.done)
    return step
  }
}

async function record(deps: RecordDeps, open: OpenOperation, done?: number): Promise<void> {
  const { records, redis } = deps
  const what = await describe(deps, open)
  if (what === undefined) return
  const { id, by, createdAt } = open.operation
  // An erasure promises nothing about later posts: they stay. A deleted tenant has none until its
  // end.
  const until =
    what.kind === 'erasure' ? Date.parse(createdAt) + APART_MS : await readRedisTime(redis)
  const stamp = Math.floor(until * 1_000)
  await records.write([{ ...what, id, stamp, by, ...(done !== undefined && { done }) }])
}

type What<Of = DeletionRecord> = Of extends unknown
  ? Omit<Of, 'id' | 'stamp' | 'by' | 'done'>
  : never

/** The clock of an API may be behind Redis's by this: `sluice doctor` reports more. */
const APART_MS = 1_000

/** Returns undefined for an operation that only counts. */
async function describe(
  { db, retainDays }: RecordDeps,
  { operation: { kind, filter = {}, erases, createdAt } }: OpenOperation,
): Promise<What | undefined> {
  const { tenant = '', service, externalId } = filter
  if (kind === 'retain') {
    const rules = (await readRules(db)).map(({ service, ...rule }) => {
      return { ...rule, ...(service !== undefined && { service }) }
    })
    return { kind: 'retention', rules, days: retainDays, at: Date.parse(createdAt) }
  }
  if (erases === undefined && service !== undefined && externalId !== undefined) {
    const sourceId = sourceIdOf(tenant, { service, externalId })
    return { kind: 'deletion', tenant, deletes: [{ sourceId }] }
  }
  if (erases === undefined) return { kind: 'tenant', tenant }
  const { speaker, mode, dryRun } = erases
  if (dryRun) return undefined
  const of = { tenant, ...(service !== undefined && { service }) }
  return { kind: 'erasure', ...of, speaker, mode, key: await readKey(db) }
}
