// The commands `sluice keys create|list|limit|rotate|revoke`, and how they describe keys.
import type { KeyLimits, KeyRecord, KeyRole, NewKey } from '@sluice/store/keys'
import {
  createKey,
  KEY_ROLES,
  keyState,
  limitKey,
  listKeys,
  revokeKey,
  rotateKey,
  shortKeyId,
} from '@sluice/store/keys'
import { Command, Option } from 'commander'
import type { Db } from 'mongodb'
import { UserError } from '../errors.ts'
import { describeSeconds, moment, parseCount, parseDuration, parseEnd, tableLines } from '../terminal.ts'

/** The commands close the database that they open. */
export interface KeysDeps {
  openDb: () => Promise<{ db: Db; close: () => Promise<void> }>
  print: (line: string) => void
}

const DAY_SECONDS = 86_400

/** A new key is the last line printed, so that a script can read it. */
export function keysCommand(deps: KeysDeps): Command {
  return new Command('keys')
    .description('Creates, lists, limits, rotates and revokes API keys')
    .addCommand(createCommand(deps))
    .addCommand(listCommand(deps))
    .addCommand(limitCommand(deps))
    .addCommand(rotateCommand(deps))
    .addCommand(revokeCommand(deps))
}

interface LimitOptions {
  quotesPerSecond?: number
  burstQuotes?: number
}

interface CreateOptions extends LimitOptions {
  role: KeyRole
  tenant?: string
  name: string
  expires?: Date
}

function createCommand(deps: KeysDeps): Command {
  const role = new Option(
    '--role <role>',
    'importer posts for a tenant, operator handles failed jobs of all tenants, viewer only sees them',
  )
  const command = new Command('create')
    .description('Creates a key and shows it once')
    .addOption(role.choices(KEY_ROLES).default('importer'))
    .option('--tenant <name>', 'the tenant whose data the key opens; required for an importer')
    .option('--name <name>', 'your name for the key, which no other working key of the tenant has', 'default')
    .option('--expires <when>', 'a time from now (90d) or an ISO 8601 date', parseEnd)
  return withLimits(command).action(async (options: CreateOptions) => {
    const { role, tenant, name, expires: expiresAt } = options
    const details = { role, tenant, name, expiresAt, limits: limitsOf(options) }
    printNewKey(await withDb(deps, (db) => createKey(db, details)), deps)
  })
}

function limitCommand(deps: KeysDeps): Command {
  const command = new Command('limit')
    .description('Changes how many quotes a key may post; every API applies it within five seconds')
    .argument('<name|id>', 'the name of the key, or the first six or more digits of its id')
  return withLimits(command)
    .option('--none', 'removes the limits of its own: those of all keys apply')
    .action(async (reference: string, options: LimitOptions & { none?: true }) => {
      const limits = limitsOf(options)
      if ((limits === undefined) !== (options.none === true)) {
        throw new UserError('Give either --quotes-per-second or --none.')
      }
      const record = await withDb(deps, (db) => limitKey(db, reference, limits))
      deps.print(`The key ${describeKey(record)} may post ${describeLimits(limits)}.`)
    })
}

function withLimits(command: Command): Command {
  return command
    .option('--quotes-per-second <number>', 'how many quotes the key may post each second', parseCount)
    .option(
      '--burst-quotes <number>',
      'how many it may post at once after a pause (default: those of a minute)',
      parseCount,
    )
}

const MINUTE_SECONDS = 60

/** A burst alone is a mistake: its rate would be a guess. */
function limitsOf({ quotesPerSecond, burstQuotes }: LimitOptions): KeyLimits | undefined {
  if (quotesPerSecond !== undefined) {
    return { quotesPerSecond, burstQuotes: burstQuotes ?? quotesPerSecond * MINUTE_SECONDS }
  }
  if (burstQuotes !== undefined) throw new UserError('--burst-quotes needs --quotes-per-second.')
  return undefined
}

function listCommand(deps: KeysDeps): Command {
  return new Command('list')
    .description('Lists keys, oldest first')
    .option('--tenant <name>', 'only the keys of this tenant')
    .option('--json', 'as JSON, with whole ids')
    .action(async ({ tenant, json }: { tenant?: string; json?: true }) => {
      const records = await withDb(deps, (db) => listKeys(db, tenant))
      const withState = records.map((record) => ({ ...record, state: keyState(record, Date.now()) }))
      if (json) deps.print(JSON.stringify(withState, null, 2))
      else tableLines([COLUMNS, ...withState.map(cells)]).forEach(deps.print)
    })
}

interface RotateOptions {
  overlap: number
  expires?: Date
}

function rotateCommand(deps: KeysDeps): Command {
  const overlap = new Option('--overlap <time>', 'how long the old key still works: 30m, 24h, 7d')
  return new Command('rotate')
    .description('Creates a key that replaces another one; the old key works until the overlap ends')
    .argument('<name|id>', 'the name of the key, or the first six or more digits of its id')
    .addOption(overlap.argParser(parseDuration).default(DAY_SECONDS, '24h'))
    .option('--expires <when>', 'a time from now (90d) or an ISO 8601 date (default: that of the old key)', parseEnd)
    .action(async (reference: string, { overlap, expires }: RotateOptions) => {
      const options = { overlapSeconds: overlap, expiresAt: expires }
      const rotated = await withDb(deps, (db) => rotateKey(db, reference, options))
      const { id, expiresAt } = rotated.replaced
      deps.print(`Key ${shortKeyId(id)} is replaced and works until ${describeEnd(expiresAt)}.`)
      printNewKey(rotated, deps)
    })
}

function revokeCommand(deps: KeysDeps): Command {
  return new Command('revoke')
    .description('Revokes a key for good; every API refuses it within five seconds')
    .argument('<name|id>', 'the name of the key, or the first six or more digits of its id')
    .action(async (reference: string) => {
      const record = await withDb(deps, (db) => revokeKey(db, reference))
      deps.print(`Revoked the key ${describeKey(record)}.`)
    })
}

async function withDb<T>({ openDb }: KeysDeps, work: (db: Db) => Promise<T>): Promise<T> {
  const { db, close } = await openDb()
  return work(db).finally(close)
}

function printNewKey({ key, record }: NewKey, { print }: KeysDeps): void {
  print('Created a key:')
  for (const line of keyDetails(record)) print(line)
  print('Save it now: Sluice stores only its hash and never shows it again.')
  print(key)
}

const COLUMNS = ['ID', 'ROLE', 'TENANT', 'NAME', 'STATE', 'QUOTES/S', 'BURST', 'CREATED', 'LAST USED', 'EXPIRES']

function cells(record: KeyRecord & { state: string }): string[] {
  const { id, role, tenant, name, state, limits, createdAt, lastUsedAt, expiresAt } = record
  const counts = [limits?.quotesPerSecond, limits?.burstQuotes].map((count) => count?.toString() ?? '-')
  const moments = [createdAt, lastUsedAt, expiresAt].map(moment)
  return [shortKeyId(id), role, tenant || '-', name, state, ...counts, ...moments]
}

/** The lines that say all of a key but the key itself. */
function keyDetails({ id, role, tenant, name, expiresAt, limits }: KeyRecord): string[] {
  const rows = [
    ['  id', shortKeyId(id)],
    ['  name', name],
    ['  role', role],
    ['  tenant', tenant || `none: it ${role === 'viewer' ? 'sees' : 'handles'} the failed jobs of all tenants`],
    ['  expires', describeEnd(expiresAt)],
    ['  limits', role !== 'importer' ? 'none: it posts nothing' : describeLimits(limits)],
  ]
  return tableLines(rows)
}

/** Which key it is, for a sentence. */
function describeKey({ id, role, tenant, name }: KeyRecord): string {
  return `${shortKeyId(id)} of ${tenant === '' ? `the role ${role}` : `tenant ${tenant}`}, named ${name}`
}

function describeEnd(expiresAt: Date | undefined): string {
  if (expiresAt === undefined) return 'never'
  return `${expiresAt.toISOString()} (in ${describeSeconds((expiresAt.getTime() - Date.now()) / 1_000)})`
}

function describeLimits(limits: KeyLimits | undefined): string {
  if (limits === undefined) return 'as many quotes as all keys without limits of their own'
  return `${limits.quotesPerSecond} quotes a second and ${limits.burstQuotes} at once`
}
