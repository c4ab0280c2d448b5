import {
  mongoCommands,
  processRuntime,
  type QuoteDocument,
  type Runtime,
  type SourceDocument,
} from '@sluice/store'
import { requiredUrl } from '@sluice/test-support'
import { MongoClient, type MongoClientOptions } from 'mongodb'
import { afterAll, beforeAll } from 'vitest'

/**
 * The laws are about outcomes. A command whose server or machine hangs for 10 s, as a worker gives
 * it, is no breach.
 */
const LIMIT_MS = 60_000

/**
 * The real store's commands in a database of the suite's own, dropped at its end. Call it within
 * `describe`.
 */
export function openStore(name: string, options: MongoClientOptions = {}) {
  const client = new MongoClient(requiredUrl('MONGODB_URL'), options)
  const db = client.db(`${name}_${process.pid}`)
  const commands = mongoCommands(db, { limitMs: LIMIT_MS })
  beforeAll(() => commands.prepare())
  afterAll(async () => {
    await db.dropDatabase()
    await client.close()
  })
  return {
    client,
    db,
    commands,
    sources: db.collection<SourceDocument>('sources'),
    quotes: db.collection<QuoteDocument>('quotes'),
  }
}

/** A process whose clock is ahead by `ms`: a dead writer's token is `ms` older to it. */
export function clockAhead(ms: number, runtime = processRuntime): Runtime {
  return { ...runtime, now: () => runtime.now() + ms }
}

/** How many times as fast time passes for the hurried processes. */
const HURRY = 20
const began = Date.now()

/**
 * Processes for which time passes 20 times as fast, so that dead ones delay a test less. They share
 * one clock.
 */
export const hurried: Runtime = {
  ...processRuntime,
  now: () => began + (Date.now() - began) * HURRY,
  monotonic: () => performance.now() * HURRY,
  delay: (ms) => processRuntime.delay(ms / HURRY),
}

/** A process that waits for the writers of open tokens 50 ms before it sums, not 1 s. */
export const quickToSum: Runtime = { ...hurried, now: processRuntime.now }
