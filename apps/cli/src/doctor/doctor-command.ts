// The command `sluice doctor`: checks Redis, MongoDB and clocks, that sources agree with their quotes, and repairs them,
// and that the queue's load agrees with its jobs.
import { hostname } from 'node:os'
import { agreedSettings, type Environment, processSettings, readSettings, redisReplicasSetting } from '@sluice/ops'
import type { LoadAudit, QueueKeys, Redis } from '@sluice/queue'
import {
  type Finding,
  type Findings,
  mongoCommands,
  PROBE_MS,
  probeStore,
  repairSources,
  type SourceDocument,
} from '@sluice/store'
import { Command } from 'commander'
import type { Db, Document } from 'mongodb'
import { RedisAwayError } from '../errors.ts'
import { count, counted } from '../terminal.ts'
import { type Check, check, checkClocks, checkLines, readClock } from './check.ts'
import { checkMongodb } from './mongodb-checks.ts'

/** The command closes the database that it opens. */
export interface DoctorDeps {
  env: Environment
  openDb: () => Promise<{ db: Db; close: () => Promise<void> }>
  /** Connects to the Redis of the queue until `work` is done. @throws {RedisAwayError | SettingsError} */
  withQueue: <Result>(work: (redis: Redis, keys: QueueKeys) => Promise<Result>) => Promise<Result>
  print: (line: string) => void
  /** Prints what is done at the moment, apart from the result. */
  show: (line: string) => void
  /** Between two lines of progress. Default: five seconds. */
  progressMs?: number
  /** Prints what is wrong, and makes the process exit 1. */
  fail: (line: string) => void
}

/** `sluice doctor`: checks servers, compares each source with its quotes, and the load with the jobs. Safe while all runs. */
export function doctorCommand(deps: DoctorDeps): Command {
  return new Command('doctor')
    .description(
      'Checks Redis, MongoDB, clocks, and that every source agrees with its quotes, and exits 1 if there is something to repair; corrects the load of the queue',
    )
    .option('--repair', 'repairs the sources that do not')
    .option(
      '--after-restore',
      'first removes what would answer for threads that are gone, after MongoDB was restored to an earlier moment; all APIs and workers must be stopped',
    )
    .action(async ({ repair = false, afterRestore = false }: { repair?: boolean; afterRestore?: boolean }) => {
      const { db, close } = await deps.openDb()
      try {
        if (afterRestore) {
          // Loaded only if it runs: Redis's client takes 0.1 s.
          const restored = await import('./after-restore.ts')
          deps.print(await deps.withQueue((redis, keys) => restored.afterRestore(redis, keys, mongoCommands(db))))
        }
        const faults = await examineServers(deps, db)
        await examine(deps, db, repair)
        deps.print(await examineLoad(deps))
        if (faults > 0) deps.fail(`${counted(faults, 'fault')} of servers: see the lines that begin with FAULT.`)
      } finally {
        await close()
      }
    })
}

/** A question to MongoDB ends within this time. */
const ASK_MS = 10_000

/** Examines Redis, MongoDB and clocks, prints what it finds, and returns the number of faults. */
async function examineServers({ env, withQueue, print }: DoctorDeps, db: Db): Promise<number> {
  const { checkRedis } = await import('./redis-checks.ts')
  const own = {
    minMemory: processSettings.minRedisMemory,
    replicas: redisReplicasSetting,
    listSources: agreedSettings.listSources,
    searchQuotes: agreedSettings.searchQuotes,
  }
  const { minMemory, replicas, ...indexes } = readSettings(own, env)
  const ask = (database: string, command: Document) =>
    db.client.db(database).command(command, { readPreference: 'primary', signal: AbortSignal.timeout(ASK_MS) })
  const probe = () => probeStore(mongoCommands(db, { limitMs: PROBE_MS }), 0)
  const clocks: [string, number][] = [[hostname(), 0]]
  let faults = 0
  const printChecks = (title: string, checks: readonly Check[]) => {
    faults += checks.filter(({ state }) => state === 'FAULT').length
    for (const line of checkLines(title, checks)) print(line)
  }
  try {
    const examined = await withQueue((redis, keys) => checkRedis(redis, keys, minMemory, replicas))
    clocks.push([examined.host, examined.aheadMs])
    printChecks(examined.host, examined.checks)
  } catch (error) {
    if (!(error instanceof RedisAwayError)) throw error
    printChecks('Redis', [check(false, error.message, 'redis-cli -u "$REDIS_URL" ping')])
  }
  const host = `MongoDB at ${db.client.options.hosts.join(',')}`
  printChecks(host, await checkMongodb({ ...indexes, database: db.databaseName, ask, probe }))
  clocks.push([host, await readClock(async () => (await ask('admin', { hello: 1 })).localTime.getTime())])
  printChecks('Clocks', checkClocks(clocks))
  return faults
}

const LOAD: Readonly<Record<LoadAudit, string>> = {
  right: 'The load of the queue agrees with its jobs.',
  corrected: 'The load of the queue was wrong, and is corrected.',
  many: 'The load of the queue is not compared, because it has more than 1,000 jobs or tenants.',
}

/** Without Redis, sources are examined all the same. */
async function examineLoad({ withQueue }: DoctorDeps): Promise<string> {
  const { createLoadAudit } = await import('@sluice/queue')
  try {
    return await withQueue(async (redis, keys) => {
      const audit = createLoadAudit(redis, keys)
      for (;;) {
        const outcome = await audit()
        if (outcome !== undefined) return LOAD[outcome]
      }
    })
  } catch (error) {
    if (!(error instanceof RedisAwayError)) throw error
    return `The load of the queue is not compared. ${error.message}`
  }
}

async function examine(deps: DoctorDeps, db: Db, repair: boolean): Promise<void> {
  const { print, show, fail } = deps
  const about = await db.collection('sources').estimatedDocumentCount()
  const what = 'Compares the word count and the number of quotes of each source with its stored quotes'
  show(`${what}${repair ? ', and repairs what differs' : ''}: about ${count(about)} sources.`)
  const findings = await repairSources(mongoCommands(db), { repair, onProgress: showProgress(about, deps) })
  const shown = [...findings.wrong.slice(0, SOURCES_NAMED), ...findings.leftOpen.slice(0, SOURCES_NAMED)]
  for (const line of describe(findings, await nameSources(db, shown), repair)) print(line)
  // A repair repeats until no write is refused, so it leaves nothing to report.
  if (!repair && findings.wrong.length > 0)
    fail(`${findings.wrong.length} of them to repair: run the command again with --repair.`)
}

function showProgress(
  about: number,
  { show, progressMs = 5_000 }: DoctorDeps,
): (checked: number, again: number) => void {
  let lastAt = performance.now()
  return (checked, again) => {
    const isLast = checked >= about
    if (performance.now() - lastAt < progressMs && !(isLast && again > 0)) return
    lastAt = performance.now()
    show(`Checked ${count(checked)} of about ${count(about)} sources.`)
    if (isLast && again > 0)
      show(`Workers are writing ${count(again)} of them: these are checked again in ten seconds.`)
  }
}

/** Enough for people to see what the sources of one kind have in common. */
const SOURCES_NAMED = 20

type Names = ReadonlyMap<string, string>

/** The findings in lines for people. */
function describe(findings: Findings, names: Names, repair: boolean): string[] {
  const { checked, wrong, leftOpen, beingWritten } = findings
  const sources = checked === 1 ? '1 source' : `${checked} sources`
  return [
    `Checked ${sources}: word counts and numbers of quotes against the stored quotes, and tokens of writers.`,
    `Wrong: ${wrong.length}`,
    ...listOf(wrong, names),
    ...(repair ? [`Repaired: ${wrong.length}`] : []),
    ...(leftOpen.length > 0
      ? [`Right, with the token of a writer that did not finish: ${leftOpen.length}`, ...listOf(leftOpen, names)]
      : []),
    ...(beingWritten > 0 ? [`Left alone, because workers are writing them: ${beingWritten}`] : []),
  ]
}

function listOf(found: readonly Finding[], names: Names): string[] {
  const named = found.filter(({ id }) => names.has(id))
  const unnamed = found.length - named.length
  const lines = named.map((finding) => `  ${names.get(finding.id)}: ${explain(finding)}`)
  return unnamed > 0 && named.length > 0 ? [...lines, `  and ${unnamed} more`] : lines
}

/** Describes the fault of a source and its repair. */
function explain({ stored, counted, openUntil }: Finding): string {
  const differences: string[] = []
  if (stored.wordCount !== counted.wordCount)
    differences.push(`wordCount is ${stored.wordCount}, its quotes have ${counted.wordCount} words`)
  if (stored.quoteCount !== counted.quoteCount)
    differences.push(`quoteCount is ${stored.quoteCount}, ${counted.quoteCount} quotes are stored`)
  if (differences.length > 0) return `${differences.join('; ')}. --repair counts them again`
  const from = openUntil?.toISOString().slice(0, 19)
  return `a writer did not finish. The next delivery of its request removes its token, or --repair from ${from} UTC on`
}

async function nameSources(db: Db, found: readonly Finding[]): Promise<Map<string, string>> {
  if (found.length === 0) return new Map()
  const filter = { _id: { $in: found.map(({ id }) => id) } }
  const projection = { tenant: 1, service: 1, externalId: 1 }
  const documents = await db.collection<SourceDocument>('sources').find(filter, { projection }).toArray()
  const names = documents.map(({ _id, tenant, service, externalId }) => {
    return [_id, `${service}/${externalId} of tenant ${tenant} (${_id})`] as const
  })
  return new Map(names)
}
