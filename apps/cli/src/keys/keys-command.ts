// The commands `sluice keys create|list|rotate|revoke`.
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
import { parseDuration, parseEnd } from './parse-time.ts'

/** The commands close the database that they open. */
export interface KeysDeps {
  openDb: () => Promise<{ db: Db; close: () => Promise<void> }>
  print: (line: string) => void
}

const DAY_SECONDS = 86_400

/**
 * `sluice keys create|list|rotate|revoke`. A new key is the last line printed, so that a script can read it. An operator's
 * mistake ends as commander's error, with exit code 1; any other error rejects.
 */
export function keysCommand(deps: KeysDeps): Command {
  return new Command('keys')
    .description('Creates, lists, rotates and revokes API keys')
    .addCommand(createCommand(deps))
    .addCommand(listCommand(deps))
    .addCommand(rotateCommand(deps))
    .addCommand(revokeCommand(deps))
}

function createCommand(deps: KeysDeps): Command {
  return new Command('create')
    .description('Creates a key and shows it once')
    .requiredOption('--tenant <name>', 'the tenant whose data the key opens')
    .option('--name <name>', 'your name for the key', 'default')
    .option('--expires <when>', 'a time from now (90d) or an ISO 8601 date', (text) => parseEnd(text))
    .action(async (options: { tenant: string; name: string; expires?: Date }, command: Command) => {
      const { tenant, name, expires } = options
      const details = { tenant, name, ...(expires !== undefined && { expiresAt: expires }) }
      printNewKey(await withDb(deps, command, (db) => createKey(db, details)), deps)
    })
}

function listCommand(deps: KeysDeps): Command {
  return new Command('list')
    .description('Lists keys, oldest first')
    .option('--tenant <name>', 'only the keys of this tenant')
    .option('--json', 'as JSON, with whole ids')
    .action(async ({ tenant, json }: { tenant?: string; json?: true }, command: Command) => {
      const records = await withDb(deps, command, (db) => listKeys(db, tenant))
      if (json)
        deps.print(
          JSON.stringify(
            records.map((one) => ({ ...one, state: keyState(one, Date.now()) })),
            null,
            2,
          ),
        )
      else keyTable(records).forEach(deps.print)
    })
}

function rotateCommand(deps: KeysDeps): Command {
  return new Command('rotate')
    .description('Creates a key that replaces another one; the old key works until the overlap ends')
    .argument('<name|id>', 'the name of the key, or the first six or more digits of its id')
    .option('--overlap <time>', 'how long the old key still works: 30m, 24h, 7d', parseDuration, DAY_SECONDS)
    .action(async (reference: string, { overlap }: { overlap: number }, command: Command) => {
      const rotate = (db: Db) => rotateKey(db, reference, { overlapSeconds: overlap })
      printNewKey(await withDb(deps, command, rotate), deps)
    })
}

function revokeCommand(deps: KeysDeps): Command {
  return new Command('revoke')
    .description('Revokes a key for good; every API refuses it within five seconds')
    .argument('<name|id>', 'the name of the key, or the first six or more digits of its id')
    .action(async (reference: string, _options: object, command: Command) => {
      const { id, tenant, name } = await withDb(deps, command, (db) => revokeKey(db, reference))
      deps.print(`Revoked the key ${id.slice(0, SHOWN_ID)} of tenant ${tenant}, named ${name}.`)
    })
}

async function withDb<T>({ openDb }: KeysDeps, command: Command, work: (db: Db) => Promise<T>): Promise<T> {
  const { db, close } = await openDb()
  const done = await work(db).catch(operatorError).finally(close)
  if (done instanceof OperatorError) return command.error(`error: ${done.message}`)
  return done
}

class OperatorError extends Error {}

/** Returns an error that another command line avoids; throws any other. */
function operatorError(error: unknown): OperatorError {
  const avoidable = [AmbiguousKeyError, InvalidKeyDetailError, UnknownKeyError]
  if (error instanceof Error && avoidable.some((kind) => error instanceof kind)) return new OperatorError(error.message)
  throw error
}

function printNewKey({ key, record }: NewKey, { print }: KeysDeps): void {
  const end = record.expiresAt === undefined ? '' : `, until ${record.expiresAt.toISOString()}`
  print(`Key ${record.id.slice(0, SHOWN_ID)} of tenant ${record.tenant}, named ${record.name}${end}.`)
  print('Save it now: Sluice stores only its hash and never shows it again.')
  print(key)
}
