// How long threads are kept after their last post, and which of them are due to be deleted.
import type { DeletionRecord } from '@sluice/contract'
import type { QueueKeys } from '@sluice/queue'
import { type AgedThread, findThreads } from '@sluice/store/walk'
import type { Redis } from 'ioredis'
import type { Db } from 'mongodb'
import type { Operations } from '../failed/operations.ts'

/** A rule for the threads of a tenant, of all services or of one. */
export type RetentionRule = Extract<DeletionRecord, { kind: 'retention' }>['rules'][number]

/** The rules are in the collection `layout`, which has what concerns the whole store. */
const rulesIn = (db: Db) => db.collection<RetentionRule & { _id: string; at?: Date }>('layout')
const nameOf = (tenant: string, service?: string) => `retain:${JSON.stringify([tenant, service])}`

/** Adds a rule, or replaces the rule for the same threads. */
export async function writeRule(db: Db, rule: RetentionRule): Promise<void> {
  const _id = nameOf(rule.tenant, rule.service)
  await rulesIn(db).replaceOne({ _id }, { ...rule, at: new Date() }, { upsert: true })
}

/** Removes the rules that a tenant got up to a moment: another one may have its name later. */
export async function removeRules(db: Db, tenant: string, until = new Date()): Promise<void> {
  await rulesIn(db).deleteMany({ tenant, seconds: { $exists: true }, at: { $not: { $gt: until } } })
}

export async function readRules(db: Db): Promise<RetentionRule[]> {
  const rules = rulesIn(db).find({ seconds: { $exists: true } }, { readPreference: 'primary' })
  return (await rules.toArray()).map(({ _id, at: _, ...rule }) => rule)
}

/** A thread to delete. `until`: the stamp up to which its posts are deleted. */
interface DueThread extends AgedThread {
  until: number
}

/**
 * Finds the threads that are due at a moment (ms since 1970), part by part. The rule of a service
 * goes before the rule of its tenant, and this one before the default (in days; 0 for none).
 * @throws {CommandFailedError}
 */
export async function* findDue(
  db: Db,
  rules: readonly RetentionRule[],
  defaultDays: number,
  at: number,
): AsyncGenerator<DueThread[]> {
  const untilOf = (seconds: number | null) =>
    seconds === null ? Number.NEGATIVE_INFINITY : (at - seconds * 1_000) * 1_000
  const byDefault = untilOf(defaultDays > 0 ? defaultDays * 86_400 : null)
  const byName = new Map(
    rules.map(({ tenant, service, seconds }) => [nameOf(tenant, service), untilOf(seconds)]),
  )
  const until = Math.max(byDefault, ...byName.values())
  if (until === Number.NEGATIVE_INFINITY) return
  for await (const found of findThreads(db, {}, { until }))
    yield found.flatMap((thread) => {
      const ofTenant = byName.get(nameOf(thread.tenant)) ?? byDefault
      const until = byName.get(nameOf(thread.tenant, thread.name.service)) ?? ofTenant
      return thread.stamp <= until ? [{ ...thread, until }] : []
    })
}

export interface RetentionDeps {
  redis: Redis
  keys: QueueKeys
  db: Db
  /** The default of `findDue`. */
  retainDays: number
}

/** Due threads are looked for once in this time, or in `ASK_MS` while there is no rule. */
const EVERY_MS = 24 * 60 * 60 * 1_000
const ASK_MS = 60_000

/**
 * Makes the function that opens the operation on due threads, in one process once in `EVERY_MS`.
 */
export function createOpenDue(
  { redis, keys, db, retainDays }: RetentionDeps,
  operations: Pick<Operations, 'open'>,
) {
  const key = `${keys.base}retention`
  return async (): Promise<void> => {
    if ((await redis.set(key, '', 'PX', ASK_MS, 'NX')) === null) return
    if (retainDays === 0 && (await readRules(db)).length === 0) return
    const { id } = await operations.open('retain', { filter: {} }, 0, 'retention')
    await redis.set(key, id, 'PX', EVERY_MS)
  }
}
