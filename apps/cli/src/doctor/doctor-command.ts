import { type Findings, mongoCommands, repairSources } from '@sluice/store'
import { Command } from 'commander'
import type { Db } from 'mongodb'
import { describeFindings } from './describe-findings.ts'
import { nameSources } from './name-sources.ts'

/** What the command needs: a database that it closes again, where its lines go, and how it says that something is wrong (exit code 1). */
export interface DoctorContext {
  openDb: () => Promise<{ db: Db; close: () => Promise<void> }>
  print: (line: string) => void
  fail: (line: string) => void
}

/** `sluice doctor [--repair]`: holds what is stored against itself. Safe while API and workers run. */
export function doctorCommand(context: DoctorContext): Command {
  return new Command('doctor')
    .description('Checks that every source agrees with its quotes; exits 1 where something is wrong and stays so')
    .option('--repair', 'brings what is wrong into agreement')
    .action(({ repair = false }: { repair?: boolean }) => examine(context, repair))
}

async function examine({ openDb, print, fail }: DoctorContext, repair: boolean): Promise<void> {
  const { db, close } = await openDb()
  try {
    const findings = await repairSources(mongoCommands(db), { repair })
    for (const line of describeFindings(findings, await nameSources(db, findings.wrong), repair)) print(line)
    const left = findings.wrong.length - findings.repaired
    if (left > 0) fail(advice(findings, left, repair))
  } finally {
    await close()
  }
}

function advice({ wrong }: Findings, left: number, repair: boolean): string {
  if (!repair) return `${wrong.length} of them to repair: run the command again with --repair.`
  return `${left} were written by a worker in the meantime: run the command again.`
}
