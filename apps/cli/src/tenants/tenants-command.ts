// The command `sluice tenants list`.
import { keyState, listKeys } from '@sluice/credentials/keys'
import { sumTenants } from '@sluice/store'
import { formatMoment, formatNumber, printAnswer, tableLines } from '@sluice/terminal'
import { Command } from 'commander'
import type { Db } from 'mongodb'
import type { KeysDeps } from '../keys/keys-command.ts'

export function tenantsCommand({ openDb, print }: KeysDeps): Command {
  const tenants = new Command('tenants').description('Lists tenants')
  tenants
    .command('list')
    .description('Lists what each tenant has stored, and how many of its keys work')
    .option('--json', 'as JSON')
    .action(async (options: { json?: true }) => {
      const { db, close } = await openDb()
      const found = await listTenants(db).finally(close)
      printAnswer({ print }, options, found, (listed) =>
        tableLines([COLUMNS, ...listed.map(cells)]),
      )
    })
  return tenants
}

type ListedTenant = Awaited<ReturnType<typeof listTenants>>[number]

/** About what a thread, a message and a word need in MongoDB, before it compresses them. */
const BYTES = { thread: 800, quote: 450, word: 6 }

/** Lists tenants with stored threads, or with keys that work; those with the most threads first. */
async function listTenants(db: Db) {
  const [totals, records] = await Promise.all([sumTenants(db), listKeys(db)])
  const now = Date.now()
  // Operators and viewers have no tenant.
  const working = records.filter(
    (one) => one.tenant !== '' && ['live', 'replaced'].includes(keyState(one, now)),
  )
  const keysOf = Map.groupBy(working, ({ tenant }) => tenant)
  const names = new Set([...totals.keys(), ...keysOf.keys()])
  const listed = Array.from(names, (tenant) => {
    const { threads = 0, quotes = 0, words = 0, stamp } = totals.get(tenant) ?? {}
    const bytes = BYTES.thread * threads + BYTES.quote * quotes + BYTES.word * words
    const keys = keysOf.get(tenant)?.length ?? 0
    const lastPostAt = stamp === undefined ? undefined : new Date(stamp / 1_000)
    return { tenant, threads, quotes, bytes, keys, lastPostAt }
  })
  return listed.sort(
    (one, other) => other.threads - one.threads || (one.tenant < other.tenant ? -1 : 1),
  )
}

const COLUMNS = ['TENANT', 'THREADS', 'QUOTES', 'ABOUT MB', 'KEYS', 'LAST POST']

function cells({ tenant, threads, quotes, bytes, keys, lastPostAt }: ListedTenant): string[] {
  const counts = [formatNumber(threads), formatNumber(quotes), (bytes / 1e6).toFixed(1)]
  return [tenant, ...counts, formatNumber(keys), formatMoment(lastPostAt)]
}
