// The command `sluice doctor`: checks that sources agree with their quotes, and repairs them, and that the queue's load
// agrees with its jobs.
import type { LoadAudit } from '@sluice/queue'
import { type Finding, type Findings, mongoCommands, repairSources, type SourceDocument } from '@sluice/store'
import { Command } from 'commander'
import type { Db } from 'mongodb'
import { RedisAwayError } from '../errors.ts'
import { count } from '../terminal.ts'

/** The command closes the database that it opens. */
export interface DoctorDeps {
  openDb: () => Promise<{ db: Db; close: () => Promise<void> }>
  /** Compares the totals of the queue's load with its jobs, and corrects them. @throws {RedisAwayError | SettingsError} */
  auditLoad: () => Promise<LoadAudit>
  print: (line: string) => void
  /** Prints what is done at the moment, apart from the result. */
  show: (line: string) => void
  /** Between two lines of progress. Default: five seconds. */
  progressMs?: number
  /** Prints what is wrong, and makes the process exit 1. */
  fail: (line: string) => void
}

/** `sluice doctor [--repair]`: compares each source with its quotes, and the load with the jobs. Safe while all runs. */
export function doctorCommand(deps: DoctorDeps): Command {
  return new Command('doctor')
    .description(
      'Checks that every source agrees with its quotes, and exits 1 if one does not; corrects the load of the queue',
    )
    .option('--repair', 'repairs the sources that do not')
    .action(async ({ repair = false }: { repair?: boolean }) => {
      await examine(deps, repair)
      deps.print(await examineLoad(deps))
    })
}

const LOAD: Readonly<Record<LoadAudit, string>> = {
  right: 'The load of the queue agrees with its jobs.',
  corrected: 'The load of the queue was wrong, and is corrected.',
  many: 'The load of the queue is not compared, because it has more than 1,000 jobs or tenants.',
}

/** Without Redis, sources are examined all the same. */
async function examineLoad({ auditLoad }: DoctorDeps): Promise<string> {
  try {
    return LOAD[await auditLoad()]
  } catch (error) {
    if (!(error instanceof RedisAwayError)) throw error
    return `The load of the queue is not compared. ${error.message}`
  }
}

async function examine(deps: DoctorDeps, repair: boolean): Promise<void> {
  const { openDb, print, show, fail } = deps
  const { db, close } = await openDb()
  try {
    const about = await db.collection('sources').estimatedDocumentCount()
    const what = 'Compares the word count and the number of quotes of each source with its stored quotes'
    show(`${what}${repair ? ', and repairs what differs' : ''}: about ${count(about)} sources.`)
    const findings = await repairSources(mongoCommands(db), { repair, onProgress: showProgress(about, deps) })
    const shown = [...findings.wrong.slice(0, SOURCES_NAMED), ...findings.leftOpen.slice(0, SOURCES_NAMED)]
    for (const line of describe(findings, await nameSources(db, shown), repair)) print(line)
    // A repair repeats until no write is refused, so it leaves nothing to report.
    if (!repair && findings.wrong.length > 0)
      fail(`${findings.wrong.length} of them to repair: run the command again with --repair.`)
  } finally {
    await close()
  }
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
