import { ObjectId } from 'mongodb'
import type { Collections } from './collections.ts'
import { countQuotes, type QuoteTotals } from './count-quotes.ts'
import type { SourceDocument } from './documents.ts'
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

const SOURCES_AT_A_TIME = 100

type Checked = Pick<SourceDocument, '_id' | 'wordCount' | 'quoteCount' | 'meta'>

/**
 * Holds every source's totals against its quotes and, where asked to, brings them into agreement and takes off writers that are gone. Safe while
 * workers run: each write is guarded by the version that was read.
 */
export async function repairSources(
  store: Collections,
  { repair, now = Date.now() }: { repair: boolean; now?: number },
): Promise<Findings> {
  const findings: Findings = { checked: 0, wrong: [], repaired: 0, beingWritten: 0 }
  const cursor = store.sources.find<Checked>({}, { projection: { wordCount: 1, quoteCount: 1, meta: 1 } })
  let some: Checked[] = []
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
  some: Checked[],
  how: { repair: boolean; now: number },
  findings: Findings,
): Promise<void> {
  findings.checked += some.length
  const sums = await countQuotes(
    store,
    some.map((source) => source._id),
  )
  const version = new ObjectId()
  const writes: GuardedWrite[] = []
  for (const source of some) {
    const wanted = repaired(source, sums.get(source._id), how.now)
    if (wanted.writers.length > 0) findings.beingWritten += 1
    if (!wanted.differs) continue
    findings.wrong.push(source._id)
    writes.push(writeOf(source, wanted, version))
  }
  if (!how.repair || writes.length === 0) return
  const refused = await writeGuarded(store.guardedSources, writes, version)
  findings.repaired += writes.length - refused.size
}

function repaired(source: Checked, sum: QuoteTotals | undefined, now: number) {
  const before = source.meta.writers ?? []
  const writers = before.filter((writer) => now - writer.since.getTime() < WRITER_SETTLED_MS)
  const totals = sum ?? { wordCount: 0, quoteCount: 0 }
  const agrees = totals.wordCount === source.wordCount && totals.quoteCount === source.quoteCount
  return { writers, totals, differs: !agrees || writers.length < before.length }
}

function writeOf(source: Checked, wanted: ReturnType<typeof repaired>, version: ObjectId): GuardedWrite {
  const set = { ...wanted.totals, 'meta.version': version }
  const update =
    wanted.writers.length === 0
      ? { $set: set, $unset: { 'meta.writers': '', 'meta.digest': '' } }
      : { $set: { ...set, 'meta.writers': wanted.writers }, $unset: { 'meta.digest': '' } }
  return { id: source._id, read: source.meta.version, update }
}
