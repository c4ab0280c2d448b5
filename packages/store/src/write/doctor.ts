// Finds sources that disagree with their quotes, and repairs them. Removes digests after a restore.
import { DELETIONS_MS, STALE_MS, type WriterToken } from '../documents.ts'
import {
  chunksOf,
  createSteps,
  type QuoteTotals,
  type SourceTotals,
  type StoreCommands,
} from '../mongodb/commands.ts'
import { processRuntime } from '../mongodb/mongo-commands.ts'
import type { WriteDeps } from './guarded-writes.ts'
import { NO_QUOTES, recount, SOURCES_AT_ONCE } from './sum-sources.ts'
import { createIsExcluded, createWatermarks, EXPIRED_MS, isExpired, isStale } from './tokens.ts'

/** A source as it was compared with its quotes. */
export interface ComparedSource {
  id: string
  stored: QuoteTotals
  /** The sum of its stored quotes. */
  counted: QuoteTotals
  /** When the last open token of a dead writer expires. Absent if the source has no such token. */
  openUntil?: Date
}

interface RepairReport {
  checked: number
  /** Sources whose totals disagreed with their quotes. */
  wrong: ComparedSource[]
  /** Sources that agreed with their quotes, and had a token of a writer that is slow or dead. */
  leftOpen: ComparedSource[]
  /** The number of sources that were written during both checks. */
  beingWritten: number
  /** The ids of documents among the sources that Sluice did not write. */
  foreign: string[]
}

/**
 * Compares the totals of all sources with their quotes. With `repair`, recounts the wrong sources
 * and removes expired tokens. Safe while workers run. Sources that are being written, or that a
 * dead writer has left wrong, are checked again after 10 s: `onProgress` receives their number as
 * `again`.
 */
export async function repairSources(
  commands: StoreCommands,
  {
    repair,
    onProgress,
  }: { repair: boolean; onProgress?: (checked: number, again: number, wrong: number) => void },
  runtime = processRuntime,
): Promise<RepairReport> {
  const deps = { commands: { ...commands, sumQuotes: sumInSteps(commands) }, runtime, repair }
  const report: RepairReport = {
    checked: 0,
    wrong: [],
    leftOpen: [],
    beingWritten: 0,
    foreign: [],
  }
  const busy: string[] = []
  for await (const { own, foreign } of commands.scanSources()) {
    report.foreign.push(...foreign)
    for (const some of chunksOf(own, SOURCES_AT_ONCE)) {
      report.checked += some.length
      busy.push(...(await checkSome(deps, some, (token) => !isStale(runtime, token), report, true)))
      onProgress?.(report.checked, busy.length, report.wrong.length)
    }
  }
  if (busy.length === 0) return report
  const began = runtime.now()
  await runtime.delay(STALE_MS)
  // `began` is by this machine's clock. `since` is by the writer's clock, which may be a minute
  // ahead: then an old token seems new, and its source is not checked.
  const isNew = (token: WriterToken) => !isStale(runtime, token) && token.since.getTime() > began
  for (const ids of chunksOf(busy, SOURCES_AT_ONCE)) {
    const some = await commands.find('sources', ids)
    report.beingWritten += (await checkSome(deps, some, isNew, report, false)).length
  }
  return report
}

/** Sums the quotes of as many sources in one command as MongoDB can. */
function sumInSteps(commands: StoreCommands): StoreCommands['sumQuotes'] {
  const inSteps = createSteps(SOURCES_AT_ONCE, 1)
  return async (ids, how) => {
    const sums: Awaited<ReturnType<StoreCommands['sumQuotes']>> = []
    for (let left = ids; left.length > 0; )
      await inSteps(async (step) => {
        sums.push(...(await commands.sumQuotes(left.slice(0, step), how)))
        left = left.slice(step)
      })
    return sums
  }
}

/**
 * Compares these sources, adds the results to the report, and repairs. Returns the ids of sources
 * to check again.
 */
async function checkSome(
  { commands, runtime, repair }: WriteDeps & { repair: boolean },
  some: readonly SourceTotals[],
  isAlive: (token: WriterToken) => boolean,
  report: RepairReport,
  isFirst: boolean,
): Promise<string[]> {
  const watermarks = createWatermarks(commands)
  await watermarks.read(some.flatMap(({ meta }) => meta.tokens ?? []))
  const open = some.map(watermarks.withoutSettledTokens)
  const isInUse = ({ meta }: SourceTotals) => meta.tokens?.some(isAlive) === true
  const notInUse = open.filter((source) => !isInUse(source))
  const toSum = notInUse.map(({ _id }) => _id)
  const found = await commands.sumQuotes(toSum, { areNeighbours: isFirst })
  const sums = new Map(found.map(({ _id, ...sum }) => [_id, sum]))
  const compared = notInUse.map((source) => compare(source, sums.get(source._id) ?? NO_QUOTES))
  const toConfirm = compared.filter((one) => !agrees(one) || one.openUntil !== undefined)
  // A source that was written after it was read may have agreed with its quotes all the time, so do
  // not report it.
  const ids = toConfirm.map(({ id }) => id)
  const read = new Map(some.map(({ _id, meta }) => [_id, meta.version]))
  const now = await commands.findVersions('sources', ids)
  const unmoved = new Set(
    now.flatMap(({ _id, meta }) => (meta.version.equals(read.get(_id)) ? [_id] : [])),
  )
  // The request of a dead writer may be delivered again soon, which corrects the totals.
  const isPassing = (one: ComparedSource) =>
    isFirst && !agrees(one) && (one.openUntil?.getTime() ?? 0) > runtime.now()
  const isSure = (one: ComparedSource) => unmoved.has(one.id) && !isPassing(one)
  const still = toConfirm.filter(isSure)
  report.wrong.push(...still.filter((one) => !agrees(one)))
  report.leftOpen.push(...still.filter(agrees))
  const toRecount = repair ? still.map(({ id }) => id) : []
  const deps = { commands, runtime, watermarks, isExcluded: createIsExcluded(runtime) }
  await recount(deps, toRecount, (token) => isExpired(runtime, token))
  const unsure = toConfirm.filter((one) => !isSure(one))
  return [...open.filter(isInUse).map(({ _id }) => _id), ...unsure.map(({ id }) => id)]
}

function compare(
  { _id, wordCount, quoteCount, meta }: SourceTotals,
  counted: QuoteTotals,
): ComparedSource {
  const compared = { id: _id, stored: { wordCount, quoteCount }, counted }
  const opened = (meta.tokens ?? []).map(({ since }) => since.getTime())
  return opened.length === 0
    ? compared
    : { ...compared, openUntil: new Date(Math.max(...opened) + EXPIRED_MS) }
}

function agrees({ stored, counted }: ComparedSource): boolean {
  return stored.wordCount === counted.wordCount && stored.quoteCount === counted.quoteCount
}

/**
 * Removes the digest of each source, because a backup may lack quotes that the digest's request
 * contained. Returns the number of removed digests. Each source gets a new version, so that the
 * write of a worker that has read the digest is refused.
 */
export async function forgetDigests(commands: StoreCommands): Promise<number> {
  let removed = 0
  for await (const { own } of commands.scanSources()) {
    const ids = own.filter(({ meta }) => meta.digest !== undefined).map(({ _id }) => _id)
    for (const some of chunksOf(ids, SOURCES_AT_ONCE)) {
      const u = { $set: { 'meta.version': processRuntime.newId() }, $unset: { 'meta.digest': 1 } }
      const { n } = await commands.update('sources', [
        { q: { _id: { $in: some } }, u, multi: true },
      ])
      removed += n
    }
  }
  return removed
}

/**
 * Removes the tombstones of deletions that no older request can follow any more. Returns their
 * number.
 */
export async function forgetDeletions(
  commands: StoreCommands,
  runtime = processRuntime,
): Promise<number> {
  const until = (runtime.now() - DELETIONS_MS) * 1_000
  const isOld = ({ meta: { stamp, deletion, tokens = [] } }: SourceTotals): boolean => {
    if (stamp !== undefined || deletion === undefined) return false
    const all = [deletion, ...Object.values(deletion.others ?? {})]
    const stamps = all.flatMap((one) => [one.stamp, ...Object.values(one.ofQuotes ?? {})])
    return Math.max(...stamps) < until && tokens.every((token) => isExpired(runtime, token))
  }
  let removed = 0
  for await (const { own } of commands.scanSources())
    for (const some of chunksOf(own.filter(isOld), SOURCES_AT_ONCE))
      removed += (await commands.removeSources(some)).n
  return removed
}
