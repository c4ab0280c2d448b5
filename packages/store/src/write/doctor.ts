// Finds sources that disagree with their quotes, and repairs them.
import type { WriterToken } from '../documents.ts'
import type { QuoteTotals, SourceTotals, StoreCommands } from '../mongodb/commands.ts'
import { processRuntime } from '../mongodb/mongo-commands.ts'
import type { WriteDeps } from './guarded-writes.ts'
import { recount, SOURCES_AT_ONCE, sumQuotes } from './sum-sources.ts'
import { createIsExcluded, createWatermarks, EXPIRED_MS, isExpired, isStale, STALE_MS } from './tokens.ts'

/** One source that is not as it should be. */
export interface Finding {
  /** The source's id. */
  id: string
  stored: QuoteTotals
  /** The sum of its stored quotes. */
  counted: QuoteTotals
  /** Until when an open token of a writer that is gone stays in the source. Absent if it has none. */
  openUntil?: Date
}

/** The results of a run. */
export interface Findings {
  checked: number
  /** Sources whose totals disagree with their quotes, or that have an expired token: a repair ends both. */
  wrong: Finding[]
  /** Sources that agree with their quotes, and have the token of a dead writer until it expires. */
  leftOpen: Finding[]
  /** The number of wrong sources that agree now: all of them with `repair`, else 0. */
  repaired: number
  /** The number of sources that a living writer wrote twice meanwhile. */
  beingWritten: number
}

interface DoctorDeps extends WriteDeps {
  repair: boolean
}

/**
 * Compares the totals of all sources with their quotes. With `repair`, recounts the wrong ones and removes expired
 * tokens. Safe while workers run. Checks sources that are being written again after 10 s.
 */
export async function repairSources(
  commands: StoreCommands,
  { repair }: { repair: boolean },
  runtime = processRuntime,
): Promise<Findings> {
  const deps = { commands, runtime, repair }
  const findings: Findings = { checked: 0, wrong: [], leftOpen: [], repaired: 0, beingWritten: 0 }
  const busy: string[] = []
  let some: SourceTotals[] = []
  const check = async () => {
    findings.checked += some.length
    busy.push(...(await checkSome(deps, some, isYoung, findings)))
    some = []
  }
  const isYoung = (token: WriterToken) => !isStale(runtime, token)
  for await (const source of commands.scanSources()) {
    some.push(source)
    if (some.length === SOURCES_AT_ONCE) await check()
  }
  await check()
  if (busy.length > 0) findings.beingWritten = (await checkAgain(deps, busy, findings)).length
  return findings
}

/** Returns the sources that were written again in the meantime. */
async function checkAgain(deps: DoctorDeps, ids: readonly string[], findings: Findings): Promise<string[]> {
  const { commands, runtime } = deps
  const began = runtime.now()
  await runtime.delay(STALE_MS)
  const busy: string[] = []
  for (let start = 0; start < ids.length; start += SOURCES_AT_ONCE) {
    const some = await commands.find('sources', ids.slice(start, start + SOURCES_AT_ONCE))
    // By this machine's clock, which may differ from the writer's by a minute.
    const isNew = (token: WriterToken) => !isStale(runtime, token) && token.since.getTime() > began
    busy.push(...(await checkSome(deps, some, isNew, findings)))
  }
  return busy
}

/** Adds to the findings, and returns the ids of the sources that are being written. */
async function checkSome(
  { commands, runtime, repair }: DoctorDeps,
  some: readonly SourceTotals[],
  isAlive: (token: WriterToken) => boolean,
  findings: Findings,
): Promise<string[]> {
  const watermarks = createWatermarks(commands)
  await watermarks.read(some.flatMap(({ meta }) => meta.tokens ?? []))
  const open = some.map(watermarks.withoutSettledTokens)
  const notInUse = open.filter(({ meta }) => meta.tokens?.some(isAlive) !== true)
  const sums = await sumQuotes(
    commands,
    notInUse.map(({ _id }) => _id),
  )
  const suspects = notInUse.flatMap((source) => findingOf(source, sums.get(source._id)) ?? [])
  const moved = await movedSince(
    commands,
    notInUse.filter(({ _id }) => suspects.some(({ id }) => id === _id)),
  )
  const isDead = (token: WriterToken) => isExpired(runtime, token)
  const isWrong = ({ stored, counted, openUntil }: Finding) =>
    !agree(stored, counted) || (openUntil !== undefined && openUntil.getTime() <= runtime.now())
  const still = suspects.filter(({ id }) => !moved.has(id))
  const wrong = still.filter(isWrong)
  findings.wrong.push(...wrong)
  findings.leftOpen.push(...still.filter((finding) => !isWrong(finding)))
  if (repair && wrong.length > 0) {
    const ids = wrong.map(({ id }) => id)
    await recount({ commands, runtime, watermarks, isExcluded: createIsExcluded(runtime) }, ids, isDead)
    findings.repaired += wrong.length
  }
  return [...open.filter((source) => !notInUse.includes(source)).map(({ _id }) => _id), ...moved]
}

/** Returns undefined if the source is as it should be. */
function findingOf({ _id, wordCount, quoteCount, meta }: SourceTotals, sum?: QuoteTotals): Finding | undefined {
  const stored = { wordCount, quoteCount }
  const counted = sum ?? { wordCount: 0, quoteCount: 0 }
  const opened = (meta.tokens ?? []).map(({ since }) => since.getTime())
  if (opened.length === 0) return agree(stored, counted) ? undefined : { id: _id, stored, counted }
  return { id: _id, stored, counted, openUntil: new Date(Math.max(...opened) + EXPIRED_MS) }
}

function agree(one: QuoteTotals, other: QuoteTotals): boolean {
  return one.wordCount === other.wordCount && one.quoteCount === other.quoteCount
}

/** A source that was written since it was read may have agreed with its quotes all the time. */
async function movedSince(commands: StoreCommands, read: readonly SourceTotals[]): Promise<Set<string>> {
  const now = await commands.findVersions(
    'sources',
    read.map(({ _id }) => _id),
  )
  const versions = new Map(now.map(({ _id, meta }) => [_id, meta.version]))
  const moved = read.filter(({ _id, meta }) => versions.get(_id)?.equals(meta.version) !== true)
  return new Set(moved.map(({ _id }) => _id))
}
