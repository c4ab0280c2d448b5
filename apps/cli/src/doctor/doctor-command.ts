// The command `sluice doctor`: checks that sources agree with their quotes, and repairs them.
import { type Findings, mongoCommands, repairSources, type SourceDocument } from '@sluice/store'
import { Command } from 'commander'
import type { Db } from 'mongodb'

/** The command closes the database that it opens. */
export interface DoctorDeps {
  openDb: () => Promise<{ db: Db; close: () => Promise<void> }>
  print: (line: string) => void
  /** Prints what is wrong, and makes the process exit 1. */
  fail: (line: string) => void
}

/** `sluice doctor [--repair]`: compares each source with its quotes. Safe while API and workers run. */
export function doctorCommand(deps: DoctorDeps): Command {
  return new Command('doctor')
    .description('Checks that every source agrees with its quotes; exits 1 where one does not')
    .option('--repair', 'repairs the sources that do not')
    .action(({ repair = false }: { repair?: boolean }) => examine(deps, repair))
}

async function examine({ openDb, print, fail }: DoctorDeps, repair: boolean): Promise<void> {
  const { db, close } = await openDb()
  try {
    const findings = await repairSources(mongoCommands(db), { repair })
    for (const line of describe(findings, await nameSources(db, findings.wrong), repair)) print(line)
    // A repair repeats until no write is refused, so it leaves nothing to report.
    if (!repair && findings.wrong.length > 0)
      fail(`${findings.wrong.length} of them to repair: run the command again with --repair.`)
  } finally {
    await close()
  }
}

/** The findings in lines for people; `names` are those of the first wrong sources. */
function describe({ checked, wrong, repaired, beingWritten }: Findings, names: readonly string[], repair: boolean) {
  const unnamed = wrong.length - names.length
  const sources = checked === 1 ? '1 source' : `${checked} sources`
  return [
    `Checked ${sources}: word counts and numbers of quotes against the stored quotes, and tokens of dead writers.`,
    `Wrong: ${wrong.length}`,
    ...names.map((name) => `  ${name}`),
    ...(unnamed > 0 && names.length > 0 ? [`  and ${unnamed} more`] : []),
    ...(repair ? [`Repaired: ${repaired}`] : []),
    ...(beingWritten > 0 ? [`Left alone, because they were written in the last two minutes: ${beingWritten}`] : []),
  ]
}

/** Enough for people to see what the wrong sources have in common. */
const SOURCES_NAMED = 20

async function nameSources(db: Db, ids: readonly string[]): Promise<string[]> {
  const some = ids.slice(0, SOURCES_NAMED)
  if (some.length === 0) return []
  const found = await db
    .collection<SourceDocument>('sources')
    .find({ _id: { $in: some } }, { projection: { tenant: 1, service: 1, externalId: 1 } })
    .toArray()
  return found.map(({ _id, tenant, service, externalId }) => `${service}/${externalId} of tenant ${tenant} (${_id})`)
}
