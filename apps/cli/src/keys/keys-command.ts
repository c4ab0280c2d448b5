import {
  AmbiguousKeyError,
  createKey,
  InvalidKeyDetailError,
  listKeys,
  type NewKey,
  revokeKey,
  rotateKey,
  UnknownKeyError,
} from '@sluice/store/keys'
import { Command } from 'commander'
import type { Db } from 'mongodb'
import { keyState, keyTable, SHOWN_ID } from './key-table.ts'
import { parseDuration } from './parse-duration.ts'
import { parseEnd } from './parse-end.ts'

/** What the commands for keys need: a database that they close again, and where their lines go. */
export interface KeysContext {
  openDb: () => Promise<{ db: Db; close: () => Promise<void> }>
  print: (line: string) => void
}

const DAY_SECONDS = 86_400

/**
 * `sluice keys create|list|rotate|revoke`. A new key is the last line printed, so that a script can take it. What an
 * operator got wrong ends as commander's error, with exit code 1; anything else rejects.
 */
export function keysCommand(context: KeysContext): Command {
  return new Command('keys')
    .description('Makes, lists, rotates and revokes API keys')
    .addCommand(createCommand(context))
    .addCommand(listCommand(context))
    .addCommand(rotateCommand(context))
    .addCommand(revokeCommand(context))
}

function createCommand(context: KeysContext): Command {
  return new Command('create')
    .description('Makes a key and shows it, once')
    .requiredOption('--tenant <name>', 'whose data the key opens')
    .option('--name <name>', 'what you know the key by', 'default')
    .option('--expires <when>', 'a time from now (90d) or an ISO 8601 date', (text) => parseEnd(text))
    .action(async (options: { tenant: string; name: string; expires?: Date }, command: Command) => {
      const { tenant, name, expires } = options
      const details = { tenant, name, ...(expires !== undefined && { expiresAt: expires }) }
      printNewKey(await withDb(context, command, (db) => createKey(db, details)), context)
    })
}

function listCommand(context: KeysContext): Command {
  return new Command('list')
    .description('Lists keys, the oldest first')
    .option('--tenant <name>', 'only the keys of this tenant')
    .option('--json', 'as JSON, with whole ids')
    .action(async ({ tenant, json }: { tenant?: string; json?: true }, command: Command) => {
      const records = await withDb(context, command, (db) => listKeys(db, tenant))
      if (json)
        context.print(
          JSON.stringify(
            records.map((one) => ({ ...one, state: keyState(one, Date.now()) })),
            null,
            2,
          ),
        )
      else keyTable(records).forEach(context.print)
    })
}

function rotateCommand(context: KeysContext): Command {
  return new Command('rotate')
    .description('Makes a new key in the place of another, which goes on working for the overlap')
    .argument('<name|id>', 'the name of the key, or the first six or more digits of its id')
    .option('--overlap <time>', 'how long the old key goes on working: 30m, 24h, 7d', parseDuration, DAY_SECONDS)
    .action(async (reference: string, { overlap }: { overlap: number }, command: Command) => {
      const rotate = (db: Db) => rotateKey(db, reference, { overlapSeconds: overlap })
      printNewKey(await withDb(context, command, rotate), context)
    })
}

function revokeCommand(context: KeysContext): Command {
  return new Command('revoke')
    .description('Ends a key for good; no API takes it five seconds later')
    .argument('<name|id>', 'the name of the key, or the first six or more digits of its id')
    .action(async (reference: string, _options: object, command: Command) => {
      const { id, tenant, name } = await withDb(context, command, (db) => revokeKey(db, reference))
      context.print(`Revoked the key ${id.slice(0, SHOWN_ID)} of tenant ${tenant}, named ${name}.`)
    })
}

async function withDb<T>({ openDb }: KeysContext, command: Command, work: (db: Db) => Promise<T>): Promise<T> {
  const { db, close } = await openDb()
  const done = await work(db).catch(operatorError).finally(close)
  if (done instanceof OperatorError) return command.error(`error: ${done.message}`)
  return done
}

class OperatorError extends Error {}

/** Takes what an operator can mend by another command line for a result. */
function operatorError(error: unknown): OperatorError {
  const mendable = [AmbiguousKeyError, InvalidKeyDetailError, UnknownKeyError]
  if (error instanceof Error && mendable.some((kind) => error instanceof kind)) return new OperatorError(error.message)
  throw error
}

function printNewKey({ key, record }: NewKey, { print }: KeysContext): void {
  const end = record.expiresAt === undefined ? '' : `, until ${record.expiresAt.toISOString()}`
  print(`Key ${record.id.slice(0, SHOWN_ID)} of tenant ${record.tenant}, named ${record.name}${end}.`)
  print('Keep it now: only its hash is stored, and it is never shown again.')
  print(key)
}
