// The commands `sluice tenants list|delete|retain`.
import { hostname, userInfo } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { SERVICES } from '@sluice/contract'
import { keyState, listKeys } from '@sluice/credentials/keys'
import {
  findDue,
  openAdmin,
  type RetentionRule,
  readRules,
  removeRules,
  requireActs,
  writeRule,
} from '@sluice/operations'
import { readSettings, retainDaysSetting } from '@sluice/process'
import { sumTenants } from '@sluice/store/walk'
import {
  counted,
  describeSeconds,
  formatMoment,
  formatNumber,
  parseDuration,
  printAnswer,
  tableLines,
  UserError,
} from '@sluice/terminal'
import { Command, Option } from 'commander'
import type { Db } from 'mongodb'
import type { DoctorDeps } from '../doctor/doctor-command.ts'
import { type RemoveDeps, requireYes } from '../sources/sources-commands.ts'
import { withDb } from '../with-db.ts'

type TenantsDeps = Pick<DoctorDeps, 'env' | 'openDb' | 'withQueue' | 'print' | 'show'> &
  Pick<RemoveDeps, 'confirm'>

export function tenantsCommand(deps: TenantsDeps): Command {
  const tenants = new Command('tenants').description(
    'Lists and deletes tenants, and says how long their threads are kept',
  )
  const add = (name: string, description: string) =>
    tenants.command(name).description(description).option('--json', 'as JSON')

  add('list', 'Lists what each tenant has stored, and how many of its keys work').action(
    async (options: { json?: true }) => {
      const found = await withDb(deps, listTenants)
      printAnswer(deps, options, found, (listed) => tableLines([COLUMNS, ...listed.map(cells)]))
    },
  )
  add('delete', 'Revokes the keys of a tenant, and deletes its jobs and threads')
    .argument('<tenant>', 'the name of the tenant', parseTenant)
    .option('--yes', 'deletes without asking')
    .action((tenant: string, options: DeleteOptions) =>
      withDb(deps, (db) => deleteTenant(deps, db, tenant, options)),
    )
  add('retain', 'Deletes threads of a tenant some time after their last post')
    .argument('<tenant>', 'the name of the tenant', parseTenant)
    .argument('<time>', 'how long they are kept: 365d, or off', (text) =>
      text === 'off' ? null : parseRetention(text),
    )
    .addOption(new Option('--service <service>', 'only threads of this service').choices(SERVICES))
    .option('--dry-run', 'only says how many would be due now')
    .option('--yes', 'does not ask, also if threads are due now')
    .action((tenant: string, seconds: number | null, { service, ...options }: RetainOptions) =>
      withDb(deps, (db) =>
        retain(deps, db, { tenant, ...(service && { service }), seconds }, options),
      ),
    )
  return tenants
}

/** Refuses a blank name, because a script may have passed an empty variable. */
function parseTenant(text: string): string {
  if (text.trim() !== '') return text
  throw new UserError('The name of the tenant is blank.')
}

/** Seconds. A shorter retention is a mistake: somebody writes 0 for `off`, or `m` for months. */
const SHORTEST = 3_600

function parseRetention(text: string): number {
  const seconds = parseDuration(text)
  if (seconds >= SHORTEST) return seconds
  throw new UserError('Threads are kept for at least an hour. Write off to keep them for ever.')
}

type ListedTenant = Awaited<ReturnType<typeof listTenants>>[number]

/** About what a thread, a message and a word need in MongoDB, before it compresses them. */
const BYTES = { thread: 800, quote: 450, word: 6 }

/** Lists tenants with stored threads, or with keys that work; those with the most threads first. */
async function listTenants(db: Db) {
  const [totals, records, rules] = await Promise.all([sumTenants(db), listKeys(db), readRules(db)])
  const now = Date.now()
  // Operators and viewers have no tenant.
  const working = records.filter(
    (one) => one.tenant !== '' && ['live', 'replaced'].includes(keyState(one, now)),
  )
  const keysOf = Map.groupBy(working, ({ tenant }) => tenant)
  const rulesOf = Map.groupBy(rules, ({ tenant }) => tenant)
  const names = new Set([...totals.keys(), ...keysOf.keys()])
  const listed = Array.from(names, (tenant) => {
    const { threads = 0, quotes = 0, words = 0, stamp } = totals.get(tenant) ?? {}
    const bytes = BYTES.thread * threads + BYTES.quote * quotes + BYTES.word * words
    const keys = keysOf.get(tenant)?.length ?? 0
    const lastPostAt = stamp === undefined ? undefined : new Date(stamp / 1_000)
    const retained = (rulesOf.get(tenant) ?? []).map(ruleWords).join(', ')
    return { tenant, threads, quotes, bytes, keys, lastPostAt, retained }
  })
  return listed.sort(
    (one, other) => other.threads - one.threads || (one.tenant < other.tenant ? -1 : 1),
  )
}

const COLUMNS = ['TENANT', 'THREADS', 'QUOTES', 'ABOUT MB', 'KEYS', 'LAST POST', 'RETAINED']

function cells({ tenant, threads, quotes, bytes, keys, lastPostAt, retained }: ListedTenant) {
  const counts = [formatNumber(threads), formatNumber(quotes), (bytes / 1e6).toFixed(1)]
  return [tenant, ...counts, formatNumber(keys), formatMoment(lastPostAt), retained || '-']
}

type DeleteOptions = { yes?: true; json?: true }

/** The pause between two looks at the operation. */
const LOOK_MS = 500

async function deleteTenant(deps: TenantsDeps, db: Db, tenant: string, options: DeleteOptions) {
  const listed = (await listTenants(db)).find((one) => one.tenant === tenant)
  const { threads = 0, quotes = 0, keys = 0 } = listed ?? {}
  const what = [counted(threads, 'thread'), counted(quotes, 'quote'), counted(keys, 'key')]
  const question = `Delete the tenant ${tenant} for good: ${what.join(', ')}?`
  if (!options.yes) await requireYes(deps, question, 'delete')
  const person = { role: 'operator', by: `${userInfo().username}@${hostname()}` } as const
  await removeRules(db, tenant)
  const done = await deps.withQueue(async (redis, queueKeys) => {
    const view = openAdmin(redis, queueKeys, db).viewFor(person)
    const { id } = await requireActs(view).deleteTenant(tenant)
    deps.show(`An API deletes them in the background, also if you leave: operation ${id}.`)
    for (let shown = 0; ; await delay(LOOK_MS)) {
      const operation = await view.findOperation(id)
      if (operation === undefined || operation.state === 'completed') return operation
      if (operation.done > shown) deps.show(`Deleted ${counted(operation.done, 'thread')}.`)
      shown = operation.done
    }
  })
  printAnswer(deps, options, done, () => [
    `Deleted the tenant ${tenant}: its keys, its jobs, and ${counted(done?.done ?? 0, 'thread')}.`,
  ])
}

type RetainOptions = Pick<RetentionRule, 'service'> & DeleteOptions & { dryRun?: true }

async function retain(
  deps: TenantsDeps,
  db: Db,
  rule: RetentionRule,
  { dryRun, yes, ...options }: RetainOptions,
) {
  const { tenant, service, seconds } = rule
  const { days } = readSettings({ days: retainDaysSetting }, deps.env)
  const others = (await readRules(db)).filter(
    (one) => one.tenant === tenant && one.service !== service,
  )
  let [due, oldest] = [0, Number.POSITIVE_INFINITY]
  for await (const found of findDue(db, [...others, rule], days, Date.now()))
    for (const { stamp } of found.filter((one) => one.tenant === tenant)) {
      due += 1
      oldest = Math.min(oldest, stamp)
    }
  const oldestPostAt = due > 0 ? new Date(oldest / 1_000) : undefined
  const question = `Set the retention of ${tenant} to ${ruleWords(rule)}? ${counted(due, 'thread')} will be deleted.`
  const isAsked = !dryRun && !yes && seconds !== null && due > 0
  if (isAsked && !(await deps.confirm(question)))
    throw new UserError('The rule was not set. Add --yes to set it without being asked.')
  if (!dryRun) await writeRule(db, rule)
  printAnswer(deps, options, { ...rule, due, oldestPostAt }, () => [
    `The retention of ${tenant} ${dryRun ? 'would be' : 'is'} ${ruleWords(rule)}.`,
    `Due now: ${counted(due, 'thread')}, the oldest of ${formatMoment(oldestPostAt)}.`,
  ])
}

function ruleWords({ service, seconds }: RetentionRule): string {
  const time = seconds === null ? 'off' : describeSeconds(seconds)
  return service === undefined ? time : `${service} ${time}`
}
