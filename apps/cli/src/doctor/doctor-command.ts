// The command `sluice doctor`: checks Redis, MongoDB, clocks and sources, and repairs sources.
import { hostname } from 'node:os'
import { createDeletionRecords, forgetRecords } from '@sluice/boot/deletion-records'
import {
  agreedSettings,
  type Environment,
  processSettings,
  readSettings,
  redisReplicasSetting,
  SettingsError,
} from '@sluice/process'
import type { Redis } from '@sluice/process/redis'
import type { QueueKeys } from '@sluice/queue'
import {
  type ComparedSource,
  checkLayout,
  commitProbe,
  forgetDeletions,
  mongoCommands,
  PROBE_MS,
  reasonBehind,
  repairSources,
  type SourceDocument,
  StoreLayoutError,
} from '@sluice/store'
import {
  counted,
  formatNumber,
  messageForPeople,
  RedisUnavailableError,
  UserError,
} from '@sluice/terminal'
import { Command } from 'commander'
import { type Db, type Document, MongoServerError } from 'mongodb'
import type { DbDeps } from '../with-db.ts'
import { watchCertificates } from './certificates.ts'
import { check, checkClocks, checkLines, note, type ServerCheck } from './check.ts'
import { readErasures, type Streams } from './erasures-file.ts'
import { checkMongodb } from './mongodb-checks.ts'

/** The dependencies of the command, which closes the database that it opens. */
export interface DoctorDeps extends DbDeps {
  env: Environment
  process: Streams
  /**
   * Connects to the Redis of the queue until `work` is done.
   * @throws {RedisUnavailableError | SettingsError}
   */
  withQueue: <Result>(work: (redis: Redis, keys: QueueKeys) => Promise<Result>) => Promise<Result>
  print: (line: string) => void
  /** Prints progress, on another stream than `print`. */
  show: (line: string) => void
  /** The pause between two lines of progress. Default: five seconds. */
  progressMs?: number
  /** Prints what is wrong, and makes the process exit 1. */
  fail: (line: string) => void
}

// Loaded only if the command runs, because Redis's client takes 0.1 s.
const loadRedisChecks = () => import('./redis-checks.ts')

/**
 * `sluice doctor`: checks servers, and compares each source with its quotes. Safe while APIs and
 * workers run, except with `--after-restore`.
 */
export function doctorCommand(deps: DoctorDeps): Command {
  return new Command('doctor')
    .description(
      'Checks Redis, MongoDB, clocks, and that every source agrees with its quotes, and exits 1 if there is something to repair, 2 if it could not finish; corrects the load of the queue',
    )
    .option('--repair', 'repairs the sources that do not')
    .option(
      '--after-restore',
      'first removes what would answer for threads that are gone, applies again what was deleted since, and makes the queue feed this MongoDB, after MongoDB or Redis was restored to an earlier moment, or MongoDB was moved; all APIs and workers must be stopped',
    )
    .option(
      '--from <file>',
      'with --after-restore, if both were restored: what `sluice erasures export` has written; - for standard input',
    )
    .action(async (options: { repair?: true; afterRestore?: true; from?: string }) => {
      const { repair = false, afterRestore = false, from } = options
      if (from !== undefined && !afterRestore)
        throw new UserError('Give --from together with --after-restore.')
      const certificates = watchCertificates()
      const { db, close } = await deps.openDb().catch((error) => failUnfinished(error, 'MongoDB'))
      try {
        if (afterRestore) {
          const records = from === undefined ? undefined : readErasures(deps.process, from, db)
          const restored = await loadRedisChecks()
          const lines = await deps.withQueue((redis, keys) =>
            restored.afterRestore(redis, keys, db, records),
          )
          lines.forEach(deps.print)
        }
        const faults = await examineServers(deps, db, repair, certificates)
        await examineSources(deps, db, repair)
        if (faults > 0)
          deps.fail(`${counted(faults, 'fault')} of servers: see the lines that begin with FAULT.`)
      } catch (error) {
        failUnfinished(reasonBehind(error, db.client), nameOf(db))
      } finally {
        await close()
      }
    })
}

/** The examination ended early, so what it did not reach may be right or wrong. */
class UnfinishedError extends UserError {
  override readonly exitCode = 2
}

function failUnfinished(error: unknown, mongodb: string, far?: string): never {
  if (!(error instanceof Error) || messageForPeople(error) === undefined) throw error
  if (error instanceof UserError || error instanceof SettingsError)
    throw new UnfinishedError(error.message)
  // The driver's messages, such as "Topology is closed", name no server.
  const why = `${mongodb} failed: ${error.message}. ${far ?? 'The sources are not checked'}.`
  const correct = far === undefined ? 'If MongoDB runs, correct MONGODB_URL. If not, run' : 'Run'
  throw new UnfinishedError(
    `${why} ${correct} this again once MongoDB answers, or at a quieter time.`,
  )
}

const nameOf = ({ client: { options } }: Db) =>
  `MongoDB at ${options.srvHost ?? options.hosts.join(',')}`

/** MongoDB must answer a question within this time. */
const ASK_MS = 10_000

/** Examines Redis, MongoDB and clocks, prints what it finds, and returns the number of faults. */
async function examineServers(
  { env, withQueue, print }: DoctorDeps,
  db: Db,
  repair: boolean,
  certificates: ReadonlyMap<string, ServerCheck>,
): Promise<number> {
  const { checkRedis, pingCommands } = await loadRedisChecks()
  const own = {
    redisUrl: processSettings.redisUrl,
    minMemory: processSettings.minRedisMemory,
    replicas: redisReplicasSetting,
    ...agreedSettings,
  }
  const { redisUrl, minMemory, replicas, listSources } = readSettings(own, env)
  const ask = async (database: string, command: Document) => {
    const signal = AbortSignal.timeout(ASK_MS)
    const asking = db.client.db(database).command(command, { readPreference: 'primary', signal })
    // The driver's own error says "Timed out (undefinedms)".
    return asking.catch((error) => Promise.reject(signal.aborted ? signal.reason : error))
  }
  const probe = () => commitProbe(mongoCommands(db, { limitMs: PROBE_MS }), 0)
  const clocks: [string, number][] = [[hostname(), 0]]
  let faults = 0
  const printChecks = (title: string, checks: readonly ServerCheck[]) => {
    faults += checks.filter(({ state }) => state === 'FAULT').length
    for (const line of checkLines(title, checks)) print(line)
  }
  try {
    const examined = await withQueue(async (redis, keys) => {
      // A Redis that lost its data has lost its records of deletions, too.
      if (repair) await createDeletionRecords(redis, keys, db).complete()
      return checkRedis(redis, keys, db, minMemory, replicas)
    })
    clocks.push([examined.host, examined.aheadMs])
    printChecks(examined.host, examined.checks)
  } catch (error) {
    if (!(error instanceof RedisUnavailableError)) throw error
    const text = `${error.message.replace(/\.$/, '')}. The load of the queue is not compared.`
    printChecks('Redis', [check(false, text, pingCommands(redisUrl))])
  }
  const host = nameOf(db)
  const { checks, aheadMs } = await checkMongodb({
    database: db.databaseName,
    ask,
    probe,
    listSources,
  })
  clocks.push([host, aheadMs])
  printChecks(host, [...checks, await checkOfLayout(db)])
  printChecks('Clocks', checkClocks(clocks))
  if (certificates.size > 0) printChecks('Certificates', [...certificates.values()])
  return faults
}

async function checkOfLayout(db: Db): Promise<ServerCheck> {
  try {
    await checkLayout(db)
    return { state: 'ok', text: 'the documents have the layout of this release' }
  } catch (error) {
    if (error instanceof StoreLayoutError) return { state: 'FAULT', text: error.message }
    if (error instanceof MongoServerError)
      return note(`the layout of the documents can’t be asked: ${error.message}`)
    throw error
  }
}

async function examineSources(deps: DoctorDeps, db: Db, repair: boolean): Promise<void> {
  const { print, show, fail } = deps
  const about = await db.collection('sources').estimatedDocumentCount()
  const what =
    'Compares the word count and the number of quotes of each source with its stored quotes'
  show(
    `${what}${repair ? ', and repairs what differs' : ''}: about ${formatNumber(about)} sources.`,
  )
  const showFar = showProgress(about, deps)
  let far: string | undefined
  const onProgress = (checked: number, again: number, wrong: number) => {
    far = `${formatNumber(checked)} of about ${formatNumber(about)} sources are checked, ${formatNumber(wrong)} of them wrong`
    showFar(checked, again)
  }
  const comparing = repairSources(mongoCommands(db), { repair, onProgress })
  const { checked, wrong, leftOpen, beingWritten, foreign } = await comparing.catch((error) =>
    failUnfinished(error, nameOf(db), far),
  )
  const compared =
    'word counts and numbers of quotes against the stored quotes, and tokens of writers'
  print(`Checked ${counted(checked, 'source')}: ${compared}.`)
  print(`Wrong: ${wrong.length}`)
  for (const line of await explain(db, wrong)) print(line)
  if (repair) print(`Repaired: ${wrong.length}`)
  const forgotten = repair
    ? (await forgetDeletions(mongoCommands(db))) + (await forgetRecords(db))
    : 0
  if (forgotten > 0) print(`Marks and records of old deletions removed: ${forgotten}`)
  if (leftOpen.length > 0)
    print(`Right, with the token of a writer that is slow or gone: ${leftOpen.length}`)
  for (const line of await explain(db, leftOpen)) print(line)
  if (foreign.length > 0)
    print(
      `Left alone, because Sluice did not write them: ${counted(foreign.length, 'document')} of sources, such as ${foreign[0]}. Move them to another database, because threads with these ids fail.`,
    )
  if (beingWritten > 0) print(`Left alone, because workers are writing them: ${beingWritten}`)
  // With --repair, no wrong source remains, because a refused recount is repeated until it is
  // written.
  if (!repair && wrong.length > 0)
    fail(`${wrong.length} of them to repair: run the command again with --repair.`)
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
    show(`Checked ${formatNumber(checked)} of about ${formatNumber(about)} sources.`)
    if (isLast && again > 0)
      show(
        `Workers are writing ${formatNumber(again)} of them: these are checked again in ten seconds.`,
      )
  }
}

/**
 * A list names at most this number of sources, which is enough for people to see what they have in
 * common.
 */
const SOURCES_NAMED = 20

/** Returns a line for each of the first of these sources, with its fault. */
async function explain(db: Db, found: readonly ComparedSource[]): Promise<string[]> {
  const faults = new Map(
    found.slice(0, SOURCES_NAMED).map((finding) => [finding.id, faultOf(finding)]),
  )
  const named = { projection: { tenant: 1, service: 1, externalId: 1 } }
  const sources = db
    .collection<SourceDocument>('sources')
    .find({ _id: { $in: [...faults.keys()] } }, named)
  const lines = (await sources.toArray()).map(
    ({ _id, tenant, service, externalId }) =>
      `  ${tenant ? `${service}/${externalId} of tenant ${tenant}` : 'deleted source'} (${_id}): ${faults.get(_id)}`,
  )
  const more = found.length - lines.length
  return more > 0 && lines.length > 0 ? [...lines, `  and ${more} more`] : lines
}

/** Describes the fault of a source, and how it is repaired. */
function faultOf({ stored, counted, openUntil }: ComparedSource): string {
  const differences: string[] = []
  if (stored.wordCount !== counted.wordCount)
    differences.push(`wordCount is ${stored.wordCount}, its quotes have ${counted.wordCount} words`)
  if (stored.quoteCount !== counted.quoteCount)
    differences.push(`quoteCount is ${stored.quoteCount}, ${counted.quoteCount} quotes are stored`)
  if (differences.length > 0) return `${differences.join('; ')}. --repair counts them again`
  const from = openUntil?.toISOString().slice(0, 19)
  return `there is nothing to do; from ${from} UTC on, a post of this thread or --repair removes the token`
}
