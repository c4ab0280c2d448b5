// Leaves the record of an operation that deletes or erases, before it removes anything: its jobs
// leave none. A record names what is asked for, not what is found, so it stays small.
import type { DeletionRecords } from '@sluice/boot/deletion-records'
import type { DeletionRecord } from '@sluice/contract'
import { readRedisTime } from '@sluice/process/redis'
import { readKey } from '@sluice/store/speakers'
import type { OpenOperation, StepDone } from '../failed/operations.ts'
import { type RetentionDeps, readRules } from './retention.ts'

type TakeStep = (open: OpenOperation) => Promise<StepDone>
type RecordDeps = Pick<RetentionDeps, 'redis' | 'db' | 'retainDays'> & {
  records: Pick<DeletionRecords, 'write'>
}

/**
 * Makes steps that are recorded: at the beginning, and at the end with the count and a new stamp.
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
  const { id, by } = open.operation
  const stamp = Math.floor((await readRedisTime(redis)) * 1_000)
  await records.write([{ ...what, id, stamp, by, ...(done !== undefined && { done }) }])
}

type What<Of = DeletionRecord> = Of extends unknown
  ? Omit<Of, 'id' | 'stamp' | 'by' | 'done'>
  : never

/** Returns undefined for an operation that leaves no record, or whose job does. */
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
  if (erases === undefined) return externalId === undefined ? { kind: 'tenant', tenant } : undefined
  const { speaker, mode, dryRun } = erases
  if (dryRun) return undefined
  const of = { tenant, ...(service !== undefined && { service }) }
  return { kind: 'erasure', ...of, speaker, mode, key: await readKey(db) }
}
