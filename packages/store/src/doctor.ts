import type { QuoteTotals, Runtime, SourceTotals, StoreCommands } from './commands.ts'
import type { WriterToken } from './documents.ts'
import { findByIds, processRuntime } from './mongodb.ts'
import { recount, sumQuotes } from './recount.ts'
import { isExpired } from './tokens.ts'
import { createWatermarks } from './watermarks.ts'

// Finds sources that disagree with their quotes, and brings them into agreement.

/** The sources that were found in each state. */
export interface Findings {
  checked: number
  /** The ids of sources whose totals disagree with their quotes, or that have the token of a dead writer. */
  wrong: string[]
  /** The number of wrong sources that agree now: all of them with `repair`, else 0. */
  repaired: number
  /** The number of sources with a token of the last two minutes, so that their writer may still be alive, or written since they were read. */
  beingWritten: number
}

/** One sum must not take too long, however many sources there are. */
const SOURCES_AT_ONCE = 100

/** Compares every source's totals with its quotes and, if `repair` is set, recounts the wrong ones and takes off the tokens of dead writers. Safe while workers run. */
export async function repairSources(
  commands: StoreCommands,
  { repair }: { repair: boolean },
  runtime: Runtime = processRuntime,
): Promise<Findings> {
  const findings: Findings = { checked: 0, wrong: [], repaired: 0, beingWritten: 0 }
  let some: SourceTotals[] = []
  for await (const source of commands.scanSources()) {
    some.push(source)
    if (some.length < SOURCES_AT_ONCE) continue
    await checkSome(commands, runtime, some, repair, findings)
    some = []
  }
  await checkSome(commands, runtime, some, repair, findings)
  return findings
}

async function checkSome(
  commands: StoreCommands,
  runtime: Runtime,
  some: readonly SourceTotals[],
  repair: boolean,
  findings: Findings,
): Promise<void> {
  findings.checked += some.length
  const isDead = (token: WriterToken) => isExpired(runtime, token)
  const watermarks = createWatermarks(commands)
  await watermarks.learn(some.flatMap(({ meta }) => meta.writers ?? []))
  const open = some.map(watermarks.withOpenTokens)
  const settled = open.filter(({ meta }) => meta.writers?.every(isDead) !== false)
  findings.beingWritten += open.length - settled.length
  const sums = await sumQuotes(
    commands,
    settled.map(({ _id }) => _id),
  )
  const suspects = settled.filter(
    (source) => source.meta.writers !== undefined || !agrees(source, sums.get(source._id)),
  )
  const moved = await movedSince(commands, suspects)
  findings.beingWritten += moved.size
  const wrong = suspects.filter(({ _id }) => !moved.has(_id)).map(({ _id }) => _id)
  findings.wrong.push(...wrong)
  if (!repair || wrong.length === 0) return
  await recount({ commands, runtime, watermarks }, wrong, isDead)
  findings.repaired += wrong.length
}

function agrees(source: SourceTotals, sum: QuoteTotals | undefined): boolean {
  return sum?.wordCount === source.wordCount && sum.quoteCount === source.quoteCount
}

/** A source that was written since it was read may have agreed with its quotes all the time. */
async function movedSince(commands: StoreCommands, read: readonly SourceTotals[]): Promise<Set<string>> {
  const now = await findByIds(
    read.map(({ _id }) => _id),
    (ids) => commands.findVersions('sources', ids),
  )
  const versions = new Map(now.map(({ _id, meta }) => [_id, meta.version]))
  const moved = read.filter(({ _id, meta }) => versions.get(_id)?.equals(meta.version) !== true)
  return new Set(moved.map(({ _id }) => _id))
}
