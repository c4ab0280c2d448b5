// The commands `sluice keys create|list|limit|rotate|revoke`, and how they describe keys.
import type { KeyLimits, KeyRecord, KeyRole, NewKey } from '@sluice/credentials/keys'
import {
  createKey,
  expiresSoon,
  KEY_ROLES,
  keyState,
  limitKey,
  listKeys,
  revokeKey,
  rotateKey,
  shortKeyId,
} from '@sluice/credentials/keys'
import {
  describeSeconds,
  formatMoment,
  parseCount,
  parseDuration,
  parseEnd,
  printAnswer,
  tableLines,
  UserError,
} from '@sluice/terminal'
import { Command, Option } from 'commander'
import { type DbDeps, withDb } from '../with-db.ts'

/** The dependencies of the commands, which close the database that they open. */
export interface KeysDeps extends DbDeps {
  print: (line: string) => void
}

const DAY_SECONDS = 86_400

/** `sluice keys`. A new key is printed as the last line, so that a script can read it. */
export function keysCommand(deps: KeysDeps): Command {
  const keys = new Command('keys').description(
    'Creates, lists, limits, rotates and revokes API keys',
  )
  const add = (name: string, description: string) => keys.command(name).description(description)
  const addForKey = (name: string, description: string) =>
    add(name, description).argument(
      '<name|id>',
      'the name of the key, or the first six or more digits of its id',
    )

  const role = new Option(
    '--role <role>',
    'importer posts for a tenant, operator handles failed jobs of all tenants, viewer only sees them',
  )
  const creating = add('create', 'Creates a key and shows it once')
    .addOption(role.choices(KEY_ROLES).default('importer'))
    .option('--tenant <name>', 'the tenant whose data the key opens; required for an importer')
    .option(
      '--name <name>',
      'your name for the key, which no other working key of the tenant has',
      'default',
    )
    .option('--deletes', 'the key of an importer may delete threads, too')
    .option('--expires <when>', 'a time from now (90d) or an ISO 8601 date', parseEnd)
  withLimits(creating).action((options: CreateOptions) => create(deps, options))

  add('list', 'Lists keys, oldest first')
    .option('--tenant <name>', 'only the keys of this tenant')
    .option('--json', 'as JSON, with whole ids')
    .action((options: { tenant?: string; json?: true }) => list(deps, options))

  withLimits(
    addForKey(
      'limit',
      'Changes how many quotes a key may post; every API applies it within five seconds',
    ),
  )
    .option('--none', 'removes the limits of its own, so that the limits of all keys apply')
    .action((reference: string, options: LimitOptions & { none?: true }) =>
      limit(deps, reference, options),
    )

  const overlap = new Option('--overlap <time>', 'how long the old key still works: 30m, 24h, 7d')
  addForKey(
    'rotate',
    'Creates a key that replaces another one; the old key works until the overlap ends',
  )
    .addOption(overlap.argParser(parseDuration).default(DAY_SECONDS, '24h'))
    .option(
      '--expires <when>',
      'a time from now (90d) or an ISO 8601 date (default: when the old key expires)',
      parseEnd,
    )
    .action((reference: string, options: RotateOptions) => rotate(deps, reference, options))

  addForKey('revoke', 'Revokes a key for good; every API refuses it within five seconds').action(
    async (reference: string) => {
      const record = await withDb(deps, (db) => revokeKey(db, reference))
      deps.print(`Revoked the key ${describeKey(record)}.`)
    },
  )
  return keys
}

interface LimitOptions {
  quotesPerSecond?: number
  burstQuotes?: number
}

interface CreateOptions extends LimitOptions {
  role: KeyRole
  tenant?: string
  name: string
  deletes?: true
  expires?: Date
}

async function create(deps: KeysDeps, options: CreateOptions): Promise<void> {
  const { role, tenant, name, deletes, expires: expiresAt } = options
  const details = { role, tenant, name, deletes, expiresAt, limits: limitsOf(options) }
  printNewKey(await withDb(deps, (db) => createKey(db, details)), deps)
}

async function limit(
  deps: KeysDeps,
  reference: string,
  options: LimitOptions & { none?: true },
): Promise<void> {
  const limits = limitsOf(options)
  if ((limits === undefined) !== (options.none === true))
    throw new UserError('Give either --quotes-per-second or --none.')
  const record = await withDb(deps, (db) => limitKey(db, reference, limits))
  deps.print(`The key ${describeKey(record)} may post ${describeLimits(limits)}.`)
}

function withLimits(command: Command): Command {
  return command
    .option(
      '--quotes-per-second <number>',
      'how many quotes the key may post each second',
      parseCount,
    )
    .option(
      '--burst-quotes <number>',
      'how many it may post at once after a pause (default: as many as in a minute)',
      parseCount,
    )
}

const MINUTE_SECONDS = 60

/** Reads the limits of a key. Refuses a burst without a rate, which would have to be guessed. */
function limitsOf({ quotesPerSecond, burstQuotes }: LimitOptions): KeyLimits | undefined {
  if (quotesPerSecond !== undefined) {
    return { quotesPerSecond, burstQuotes: burstQuotes ?? quotesPerSecond * MINUTE_SECONDS }
  }
  if (burstQuotes !== undefined) throw new UserError('--burst-quotes needs --quotes-per-second.')
  return undefined
}

async function list(
  deps: KeysDeps,
  { tenant, json }: { tenant?: string; json?: true },
): Promise<void> {
  const records = await withDb(deps, (db) => listKeys(db, tenant))
  const withState = records.map((record) => ({ ...record, state: keyState(record, Date.now()) }))
  printAnswer(deps, { json }, withState, (found) => tableLines([COLUMNS, ...found.map(cells)]))
}

interface RotateOptions {
  overlap: number
  expires?: Date
}

async function rotate(
  deps: KeysDeps,
  reference: string,
  { overlap, expires }: RotateOptions,
): Promise<void> {
  const options = { overlapSeconds: overlap, expiresAt: expires }
  const rotated = await withDb(deps, (db) => rotateKey(db, reference, options))
  const { id, expiresAt } = rotated.replaced
  deps.print(`Key ${shortKeyId(id)} is replaced and works until ${describeEnd(expiresAt)}.`)
  printNewKey(rotated, deps)
}

function printNewKey({ key, record }: NewKey, { print }: KeysDeps): void {
  print('Created a key:')
  for (const line of keyDetails(record)) print(line)
  print('Save it now: Sluice stores only its hash and never shows it again.')
  print(key)
}

const COLUMNS = [
  'ID',
  'ROLE',
  'TENANT',
  'NAME',
  'STATE',
  'QUOTES/S',
  'BURST',
  'CREATED',
  'LAST USED',
  'EXPIRES',
]

function cells(record: KeyRecord & { state: string }): string[] {
  const { id, tenant, name, state, limits, createdAt, lastUsedAt, expiresAt } = record
  const counts = [limits?.quotesPerSecond, limits?.burstQuotes].map(
    (count) => count?.toString() ?? '-',
  )
  const moments = [createdAt, lastUsedAt, expiresAt].map(formatMoment)
  const shownState = expiresSoon(record, Date.now()) ? 'expires soon' : state
  return [shortKeyId(id), rightsOf(record), tenant || '-', name, shownState, ...counts, ...moments]
}

/** Returns the role of a key, and `deletes` if the key may delete. */
const rightsOf = ({ role, deletes }: KeyRecord) => (deletes ? `${role}, deletes` : role)

/** Describes a key in lines, without the key itself. */
function keyDetails(record: KeyRecord): string[] {
  const { id, role, tenant, name, expiresAt, limits } = record
  const rows = [
    ['  id', shortKeyId(id)],
    ['  name', name],
    ['  role', rightsOf(record)],
    [
      '  tenant',
      tenant || `none: it ${role === 'viewer' ? 'sees' : 'handles'} the failed jobs of all tenants`,
    ],
    ['  expires', describeEnd(expiresAt)],
    ['  limits', role !== 'importer' ? 'none: it posts nothing' : describeLimits(limits)],
  ]
  return tableLines(rows)
}

/** Names a key within a sentence. */
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
