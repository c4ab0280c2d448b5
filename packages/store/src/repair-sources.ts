import { ObjectId } from 'mongodb'
import { agreeing, SOURCES_AT_A_TIME, type SourceTotals, TOTALS } from './agreement.ts'
import type { Collections } from './collections.ts'
import { contestOpen, createClosed, learnOf } from './contest-open.ts'
import { countQuotes } from './count-quotes.ts'
import type { WriterToken } from './documents.ts'
import { type GuardedWrite, writeGuarded } from './guarded-write.ts'
import { WRITER_SETTLED_MS } from './writer-lifetime.ts'

/** What was found, in sources. */
export interface Findings {
  checked: number
  /** Their totals did not agree with their quotes, or a writer that is gone still stood in them. */
  wrong: string[]
  /** Of those, how many are in agreement now. */
  repaired: number
  /** A writer of the last minute stands in them: it is left to finish. */
  beingWritten: number
}

/**
 * Holds every source's totals against its quotes and, where asked to, brings them into agreement and takes off writers that are gone. Safe while
 * workers run: each write is guarded by the version that was read.
 */
export async function repairSources(
  store: Collections,
  { repair, now = Date.now() }: { repair: boolean; now?: number },
): Promise<Findings> {
  const findings: Findings = { checked: 0, wrong: [], repaired: 0, beingWritten: 0 }
  const cursor = store.sources.find<SourceTotals>({}, { projection: TOTALS })
  let some: SourceTotals[] = []
  for await (const source of cursor) {
    some.push(source)
    if (some.length < SOURCES_AT_A_TIME) continue
    await checkSome(store, some, { repair, now }, findings)
    some = []
  }
  await checkSome(store, some, { repair, now }, findings)
  return findings
}

async function checkSome(
  store: Collections,
  some: SourceTotals[],
  how: { repair: boolean; now: number },
  findings: Findings,
): Promise<void> {
  findings.checked += some.length
  const closed = createClosed()
  await learnOf(
    store,
    closed,
    some.flatMap(({ meta }) => meta.writers ?? []),
  )
  const liveIn = ({ meta }: SourceTotals) => (meta.writers ?? []).filter((token) => !closed.isClosed(token))
  const isYoung = ({ since }: WriterToken) => how.now - since.getTime() < WRITER_SETTLED_MS
  // A writer that was only paused for so long may still go on.
  const left = some.filter((source) => !liveIn(source).some(isYoung))
  if (how.repair) await contestOpen(store, closed, left, () => false)
  const sums = await countQuotes(
    store,
    some.map((source) => source._id),
  )
  const version = new ObjectId()
  const writes: GuardedWrite[] = []
  for (const source of some) {
    const live = liveIn(source)
    if (live.some(isYoung)) {
      findings.beingWritten += 1
      continue
    }
    // The token of a closed batch harms nobody, and goes with the next write.
    const write = agreeing(source, sums.get(source._id), () => live.length > 0, version)
    if (write === undefined) continue
    findings.wrong.push(source._id)
    writes.push(write)
  }
  if (!how.repair || writes.length === 0) return
  const refused = await writeGuarded(store.guardedSources, writes, version)
  findings.repaired += writes.length - refused.size
}
