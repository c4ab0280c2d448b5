// Decides from the open tokens of a source how it may be written. A watermark shows which tokens are not open any more.
import type { ObjectId } from 'mongodb'
import type { OpenThread, SourceDocument, ThreadRound, ThreadWork, WriterBatch, WriterToken } from '../documents.ts'
import type { GuardedWrite, Runtime, StoreCommands } from '../mongodb/commands.ts'
import { findByIds } from '../mongodb/mongo-reads.ts'

/**
 * A writer begins no command later than this after it opened a source, in ms: a process that was paused for longer must not write after others have discounted its
 * quotes. A command is assumed to take effect within as long a time again. The clocks of machines may differ by `EXPIRED_MS` less both.
 */
export const WRITE_WITHIN_MS = 30_000

/** A token this old is stale: its writer is slow or dead. The job of a dead writer is delivered again within this time. While a stale token is in a source, the source is summed at most this often. In ms. */
export const STALE_MS = 10_000

/** Nothing that the writer of a token this old has sent takes effect any more, in ms. */
export const EXPIRED_MS = 120_000

type Source = Pick<SourceDocument, 'meta'>

/** Whether a token is of some kind. */
export type IsToken = (token: WriterToken) => boolean

const ageOf = (runtime: Runtime, { since }: WriterToken) => runtime.now() - since.getTime()

/** The token's writer is slow or dead. */
export function isStale(runtime: Runtime, token: WriterToken): boolean {
  return ageOf(runtime, token) >= STALE_MS
}

/** Nothing that the token's writer has sent takes effect any more. */
export function isExpired(runtime: Runtime, token: WriterToken): boolean {
  return ageOf(runtime, token) >= EXPIRED_MS
}

/** A reservation that was not renewed for this time does not block others any more: its process hangs or died. */
const UNRENEWED_MS = 1_000
/** Bounds the memory for renewals. Beyond it, reservations block others once more for `UNRENEWED_MS`. */
const MAX_RENEWALS = 10_000

/** Returns whether another process sums the source's quotes. Serves progress alone: if a source is opened all the same, the commit of the sum is refused. */
export type IsExcluded = (source: Source, isOwn: IsToken) => boolean

/** Watches the renewals of reservations by this process's own clock, because the clocks of machines differ. */
export function createIsExcluded(runtime: Runtime): IsExcluded {
  const firstSeen = new Map<string, number>()
  function isRenewed(renewal: ObjectId): boolean {
    const key = renewal.toHexString()
    const seen = firstSeen.get(key) ?? runtime.monotonic()
    if (firstSeen.size >= MAX_RENEWALS) firstSeen.clear()
    firstSeen.set(key, seen)
    return runtime.monotonic() - seen < UNRENEWED_MS
  }
  return ({ meta: { tokens = [] } }, isOwn) =>
    tokens.some(
      (token) => !isOwn(token) && token.excludes !== undefined && !isStale(runtime, token) && isRenewed(token.excludes),
    )
}

/** The quotes must be summed, because an earlier round or delivery of the same requests, or a dead writer, left a token. */
export function needsSum(runtime: Runtime, work: ThreadWork, source: Source): boolean {
  const isStaleAndUnsummed = (token: WriterToken) =>
    isStale(runtime, token) && runtime.now() - (token.summed?.getTime() ?? 0) >= STALE_MS
  return (source.meta.tokens ?? []).some(
    (token) => isMine(work, token) || isStaleAndUnsummed(token) || isExpired(runtime, token),
  )
}

/** The token belongs to one of these requests. */
export function isMine({ requests }: ThreadWork, token: WriterToken): boolean {
  return requests.some(({ id }) => id === token.request)
}

/** Returns how to open a stored source that is not to be summed. */
export function kindOf({ plan, quoteWrites }: ThreadRound, stored: SourceDocument): OpenThread['kind'] {
  // A new cover must not be stored before the changed quotes: their old values would get a later stamp than theirs.
  const isNewCover = plan.source.document.meta.cover !== stored.meta.cover
  return isNewCover && quoteWrites.length > 0 ? 'cover' : 'final'
}

/** Writes the source as it was, with new tokens: this refuses the writes of processes that read it before. */
export function planReservation(
  round: ThreadRound,
  kind: OpenThread['kind'],
  version: ObjectId,
  tokens: WriterToken[],
): OpenThread & { write: GuardedWrite } {
  const { source } = round.stored
  if (source === undefined) throw new Error(`source ${round.work.id} was not read`)
  const update = { $set: { 'meta.version': version, 'meta.tokens': tokens } }
  const write = { id: source._id, read: source.meta.version, update }
  return { round, kind, source: { ...source, meta: { ...source.meta, version, tokens } }, write }
}

/** The tokens that stay after a sum. */
export function tokensAfterSum(runtime: Runtime, tokens: readonly WriterToken[], isRemovable: IsToken): WriterToken[] {
  const left = tokens.filter((token) => !isRemovable(token) && !isExpired(runtime, token))
  return left.map((token) => {
    const { excludes: _, ...kept } = token
    return isStale(runtime, token) ? { ...kept, summed: new Date(runtime.now()) } : token
  })
}

/** The watermarks of all writers that this process knows. */
export interface Watermarks {
  /** The batch is known to be settled. */
  covers(batch: WriterBatch): boolean
  /** Remembers a watermark that was read or raised. */
  remember(writer: string, watermark: number): void
  /** Reads the watermarks of the writers of those batches that are not known to be settled. */
  read(batches: readonly WriterBatch[]): Promise<void>
  /** Returns the source without the tokens of batches that are known to be settled. */
  withoutSettledTokens<Some extends Source>(source: Some): Some
}

/** The writers of an hour: each process has one name, and a new one after each batch that failed. */
const MAX_WRITERS = 10_000

/** Creates watermarks that know no writer yet. */
export function createWatermarks(commands: Pick<StoreCommands, 'find'>): Watermarks {
  const known = new Map<string, number>()
  const covers = ({ writer, batch }: WriterBatch) => (known.get(writer) ?? 0) >= batch

  function remember(writer: string, watermark: number): void {
    if (known.size >= MAX_WRITERS) known.clear()
    known.set(writer, Math.max(watermark, known.get(writer) ?? 0))
  }

  return {
    covers,
    remember,
    async read(batches) {
      const names = new Set(batches.filter((batch) => !covers(batch)).map(({ writer }) => writer))
      const documents = await findByIds([...names], (some) => commands.find('writers', some))
      for (const { _id, watermark } of documents) remember(_id, watermark)
    },
    withoutSettledTokens(source) {
      const { tokens, ...meta } = source.meta
      if (tokens === undefined || !tokens.some(covers)) return source
      const open = tokens.filter((token) => !covers(token))
      return { ...source, meta: open.length === 0 ? meta : { ...meta, tokens: open } }
    },
  }
}
