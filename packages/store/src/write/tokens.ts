// A token marks a source whose writer may still write quotes. A token is
// - open, until a watermark covers its batch
// - stale, after STALE_MS: its writer is slow or dead. Any process that meets the source then sums
// its quotes, at most once in STALE_MS (`summed` has the time)
// - expired, after EXPIRED_MS: no command of its writer takes effect any more. The next sum removes
// the token
// - a reservation, if it has `excludes`: its writer sums the quotes. Other processes leave the
// source alone as long as the reservation is renewed. This helps the sum to succeed; correctness
// does not need it
import type { ObjectId } from 'mongodb'
import {
  type SourceOrTombstone,
  STALE_MS,
  type ThreadWork,
  type WriterBatch,
  type WriterToken,
} from '../documents.ts'
import type { StoreCommands } from '../mongodb/commands.ts'
import type { Runtime } from '../mongodb/mongo-commands.ts'

/** A writer sends quotes only within this time after it has opened their source. */
export const WRITE_WITHIN_MS = 30_000
/**
 * After this time, no command of a token's writer takes effect any more: 30 s to write, 30 s for a
 * late command, and 60 s between two clocks.
 */
export const EXPIRED_MS = 120_000
/**
 * A reservation that was not renewed for this time does not exclude others: its process hangs or
 * has died.
 */
const UNRENEWED_MS = 1_000
/**
 * The most renewals, and the most watermarks, in memory. Above this number, all are forgotten. A
 * forgotten renewal excludes for a second more, a forgotten watermark is read again.
 */
const MAX_KNOWN = 10_000

type Source = Pick<SourceOrTombstone, 'meta'>
export type IsToken = (token: WriterToken) => boolean

/** Returns the time since the token's batch began, by the clocks of two machines. */
export function ageOf(runtime: Runtime, { since }: WriterToken): number {
  return runtime.now() - since.getTime()
}

/** Returns whether the token's writer is slow or dead. */
export function isStale(runtime: Runtime, token: WriterToken): boolean {
  return ageOf(runtime, token) >= STALE_MS
}

/** Returns whether no command of the token's writer can take effect any more. */
export function isExpired(runtime: Runtime, token: WriterToken): boolean {
  return ageOf(runtime, token) >= EXPIRED_MS
}

/** Returns whether the token belongs to one of these requests. */
export function isMine({ requests }: ThreadWork, token: WriterToken): boolean {
  return requests.some(({ id }) => id === token.request)
}

/**
 * Returns whether to sum: an earlier round or delivery of the same requests left a token, a dead
 * writer did, or an earlier round may have stored quotes after a deletion's sum, which removes them.
 */
export function needsSum(
  runtime: Runtime,
  work: ThreadWork,
  { meta: { tokens = [], deletion } }: Source,
): boolean {
  if (work.mayHaveQuotes && deletion !== undefined) return true
  const isStaleAndUnsummed = (token: WriterToken) =>
    isStale(runtime, token) && runtime.now() - (token.summed?.getTime() ?? 0) >= STALE_MS
  return tokens.some(
    (token) => isMine(work, token) || isStaleAndUnsummed(token) || isExpired(runtime, token),
  )
}

/**
 * Returns the tokens that stay after a sum: expired and removable tokens go, and stale ones get the
 * time of the sum.
 */
export function tokensAfterSum(
  runtime: Runtime,
  tokens: readonly WriterToken[],
  isRemovable: IsToken,
): WriterToken[] {
  const left = tokens.filter((token) => !isRemovable(token) && !isExpired(runtime, token))
  return left.map((token) => {
    const { excludes: _, ...kept } = token
    return isStale(runtime, token) ? { ...kept, summed: new Date(runtime.now()) } : token
  })
}

/**
 * Makes a function that returns whether another process is summing a source. It times renewals by
 * this process's clock, because the clocks of two machines differ.
 */
export function createIsExcluded(runtime: Runtime) {
  const firstSeen = new Map<string, number>()
  function isRenewed(renewal: ObjectId): boolean {
    const key = renewal.toHexString()
    const seen = firstSeen.get(key) ?? runtime.monotonic()
    if (firstSeen.size >= MAX_KNOWN) firstSeen.clear()
    firstSeen.set(key, seen)
    return runtime.monotonic() - seen < UNRENEWED_MS
  }
  return ({ meta: { tokens = [] } }: Source, isOwn: IsToken): boolean =>
    tokens.some(
      (token) =>
        !isOwn(token) &&
        token.excludes !== undefined &&
        !isStale(runtime, token) &&
        isRenewed(token.excludes),
    )
}

export type Watermarks = ReturnType<typeof createWatermarks>

/** Creates a cache of watermarks, empty at first. */
export function createWatermarks(commands: Pick<StoreCommands, 'find'>) {
  const known = new Map<string, number>()
  const covers = ({ writer, batch }: WriterBatch) => (known.get(writer) ?? 0) >= batch

  function remember(writer: string, watermark: number): void {
    if (known.size >= MAX_KNOWN) known.clear()
    known.set(writer, Math.max(watermark, known.get(writer) ?? 0))
  }

  return {
    covers,
    remember,
    /**
     * Reads the watermarks of these batches' writers, except for batches that are known to be
     * settled.
     */
    async read(batches: readonly WriterBatch[]): Promise<void> {
      const names = new Set(batches.filter((batch) => !covers(batch)).map(({ writer }) => writer))
      const documents = await commands.find('writers', [...names])
      for (const { _id, watermark } of documents) remember(_id, watermark)
    },
    /** Returns the source without the tokens of batches that are known to be settled. */
    withoutSettledTokens<Some extends Source>(source: Some): Some {
      const { tokens, ...meta } = source.meta
      if (tokens === undefined || !tokens.some(covers)) return source
      const open = tokens.filter((token) => !covers(token))
      return { ...source, meta: open.length === 0 ? meta : { ...meta, tokens: open } }
    },
  }
}
