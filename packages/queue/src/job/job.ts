// Defines a job: its payload, its options for BullMQ, its fields once it is fetched, and its result
// with a receipt for each thread.
import { hash, randomUUIDv7 } from 'node:crypto'
import type {
  DeletionAnswer,
  DeletionScope,
  Outcome,
  QuoteAnswer,
  QuoteOutcome,
  SourceAnswer,
  Thread,
  ThreadAnswer,
  Votes,
} from '@sluice/contract'
import { effectiveScore, MESSAGE, STORED_STATUS } from '@sluice/contract'

/**
 * A deletion takes the place of a thread in a job, so it is accepted, ordered, counted and retried
 * as a thread. It has no field of a thread: a worker of a release that knows no deletions fails the
 * job, and stores nothing.
 */
export interface Deletion {
  deletes: DeletionScope
  /** What people find it by. A deletion by id has the id as externalId, and `id` as service. */
  name: { service: string; externalId: string }
}

/** A job's payload: one thread of a post, or about fifty threads of an import. */
export interface IngestJob {
  tenant: string
  /**
   * The first thread's place in the order of acceptance, in µs since 1970. The other threads have
   * the next places.
   */
  stamp: number
  requestId: string
  /** The id of the key with which the job was posted. */
  keyId?: string
  /**
   * Whether the caller got the job's id as its answer, so that the job's result must be retained.
   */
  retained: boolean
  /** The API replica that waits for the result. */
  replyTo?: string
  /** If no caller waits for the import: its id, and the threads' positions in it. */
  import?: { id: string; places: number[] }
  /** The claim on the request's Idempotency-Key: see `claimName`. */
  claim?: string
  /**
   * The span that enqueued the job, as `traceparent` (W3C Trace Context), if the request is traced.
   */
  trace?: string
  threads: (QueuedThread | Deletion)[]
  /**
   * Present if an operation has written the record of these deletions, so the worker writes none.
   */
  recorded?: true
  /** The stamp of the last deletion that changed this payload: see `purge.ts`. */
  purged?: number
}

/**
 * A thread in a payload. `deleted`: it was deleted while its job was in Redis, and only the names
 * of its source are left. A deleted quote has only its ids left.
 */
export interface QueuedThread extends Thread {
  deleted?: true
  quotes: (Thread['quotes'][number] & { deleted?: true })[]
}

/**
 * Reads a payload. Returns one without threads if Sluice did not write it: another program has
 * added the job, or has changed it.
 */
export function readPayload(text: string): IngestJob {
  try {
    const data: IngestJob = JSON.parse(text)
    const isThread = (one: IngestJob['threads'][number]) =>
      typeof sourceNameOf(one).externalId === 'string' &&
      ('deletes' in one || one.quotes.length >= 0)
    if (typeof data.tenant === 'string' && data.threads.every(isThread)) return data
  } catch {
    // It is no JSON, or has other fields.
  }
  return { tenant: '', stamp: 0, requestId: '', retained: false, threads: [] }
}

/**
 * A deletion changed the job's payload after this worker fetched it. The job must run again,
 * because what this worker writes about it may have words that were deleted.
 */
export class PurgedError extends Error {
  override name = 'PurgedError'
}

/** Returns the names by which people find the source of a thread or of a deletion. */
export function sourceNameOf(thread: Thread | Deletion): Deletion['name'] {
  const { service, externalId } = 'deletes' in thread ? thread.name : thread.source
  return { service, externalId }
}

/** The last digits of a job's id are a hash of its first thread's externalId. */
export const NAME_DIGITS = 8

/** Returns the last digits of the ids of jobs whose first thread has this externalId. */
export const nameDigits = (externalId: string) => hash('sha256', externalId).slice(0, NAME_DIGITS)

/**
 * Makes an id that sorts by time (UUIDv7, RFC 9562) and can't be guessed.
 * @param externalId of the job's first thread
 */
export function newJobId(externalId?: string): string {
  const id = randomUUIDv7()
  return externalId === undefined ? id : id.slice(0, -NAME_DIGITS) + nameDigits(externalId)
}

/**
 * Returns a pattern for Redis that matches the ids of jobs whose first thread has this externalId.
 * Few other ids match.
 */
export function idsOfThread(externalId: string): string {
  return '?'.repeat(36 - NAME_DIGITS) + nameDigits(externalId)
}

/** Names a job after its threads, so that people can search for it. */
export function nameJob(threads: IngestJob['threads']): string {
  const nameOf = (thread?: Thread | Deletion) => {
    const { service, externalId } = thread ? sourceNameOf(thread) : {}
    return `${service}/${externalId}`
  }
  const first = nameOf(threads[0])
  const name =
    threads.length === 1 ? first : `${first} … ${nameOf(threads.at(-1))} (${threads.length})`
  // Redis's JSON parser refuses half a surrogate pair.
  return name.toWellFormed()
}

const JOB_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * Checks that a text has the form of an id of a job, import or operation. Any other text could name
 * another key, or be a secret.
 */
export function isJobId(text: string): boolean {
  return JOB_ID.test(text)
}

/**
 * An interactive job has one waiting caller. A bulk job belongs to an import, or to a caller that
 * does not wait.
 */
export type Lane = 'interactive' | 'bulk'

export const LANES: readonly Lane[] = ['interactive', 'bulk']

/**
 * A job fails permanently after this number of attempts. Crashes of its workers count as attempts.
 */
export const MAX_ATTEMPTS = 5

/** BullMQ's options of a job. They do not bound the attempts, because the consumer does. */
export const JOB_OPTIONS = JSON.stringify({
  attempts: Number.MAX_SAFE_INTEGER,
  backoff: { type: 'tries' },
})

/** A job as a worker fetches it. */
export interface FetchedJob {
  id: string
  /** Names its threads: see `nameJob`. */
  name: string
  lane: Lane
  data: IngestJob
  /**
   * A digest of each thread's content. Equal threads have equal digests, also in different jobs. A
   * deletion has none.
   */
  digests: readonly (string | undefined)[]
  /** The number of this attempt, from 1. Crashes of the job's workers count. */
  attempt: number
  /** Whether a worker may have begun the job before without finishing it. */
  redelivered: boolean
  /**
   * Whether a worker that had locked the job crashed or froze. The job may be the cause, so it runs
   * alone in its process.
   */
  quarantined: boolean
  /**
   * When the job was enqueued, on the monotonic clock of this process. The wait itself was measured
   * by Redis's clock, because the clocks of processes may be wrong.
   */
  waitsSince: number
  /**
   * Names the state of the list of suppressions when the job was fetched: see `noteSuppressions`.
   */
  suppressions: string
  /**
   * The receipts of the threads that were stored before an operator retried the job. Those threads
   * are not stored again.
   */
  receiptsBefore?: JobResult['receipts'] | undefined
}

/** A job that this process has locked. */
export interface LockedJob extends FetchedJob {
  /** The bytes of the job's data in Redis. */
  bytes: number
  /** The lock's value, by which BullMQ identifies the owner. */
  token: string
  progress: JobProgress
  /** In ms since 1970. */
  enqueuedAt: number
}

/**
 * What Sluice stores in the field `progress` of a BullMQ job. Attempts are not in it, because
 * BullMQ counts them in `atm` (see fetch.lua).
 */
export interface JobProgress {
  /** When the job was returned to the waiting ones, in ms since 1970. */
  waitingSince?: number
  /** When the job was last retried by hand, in ms since 1970. */
  retriedAt?: number
  /** The operation that retried it. */
  operation?: string
}

/**
 * The part of an answer to a post that does not follow from the request. The request itself need
 * not cross Redis a second time.
 */
export interface ThreadReceipt {
  source: Pick<SourceAnswer, 'outcome' | 'wordCount' | 'createdAt'>
  /** One letter for each quote of the request: see `LETTERS`. */
  outcomes: string
  /**
   * Fields of the source whose stored value differs from the request, or which the request left
   * out.
   */
  sourceDiffers?: Partial<SourceAnswer>
  /** The fields of each quote that differ in the same way, by the quote's index in the request. */
  quotesDiffer?: Record<string, Partial<QuoteAnswer>>
}

/** What became of a deletion: its whole answer. */
interface DeletionReceipt {
  source: DeletionAnswer
}

export type Receipt = ThreadReceipt | DeletionReceipt

/**
 * The outcome by which a thread of a job is counted. A deletion that found nothing counts as
 * `unchanged`, and one of quotes only, such as an erasure, as `updated`, because their source stays.
 */
export function countedOutcome(
  { threads }: Pick<IngestJob, 'threads'>,
  place: number,
  { source: { outcome } }: Receipt,
): Outcome {
  const thread = threads[place]
  if (outcome === 'absent') return 'unchanged'
  const isOfQuotes = thread && 'deletes' in thread && thread.deletes.quoteIds
  return outcome === 'deleted' && isOfQuotes ? 'updated' : outcome
}

export interface JobResult {
  /** A receipt for each thread, or null for a thread that could not be stored. */
  receipts: readonly (Receipt | null)[]
  /** Why the job failed permanently. */
  failure?: string
}

export interface CompletedJob
  extends Pick<
    LockedJob,
    'id' | 'name' | 'lane' | 'data' | 'attempt' | 'token' | 'enqueuedAt' | 'progress'
  > {
  result: JobResult
}

/**
 * Reads a job's `progress`, as Redis or BullMQ returns it. It is a number until Sluice has written
 * it.
 */
export function readProgress(progress: unknown): JobProgress {
  if (typeof progress === 'string' && progress.startsWith('{')) return JSON.parse(progress)
  return typeof progress === 'object' && progress !== null ? progress : {}
}

/**
 * Returns the attempts to show to people: at most `MAX_ATTEMPTS`, although crashes may add more.
 */
export function attemptsShown(attempts: unknown): number {
  return Math.min(Number(attempts ?? 0), MAX_ATTEMPTS)
}

const LETTERS = {
  created: 'c',
  updated: 'u',
  unchanged: '=',
  deleted: 'd',
  suppressed: 's',
} as const
const OUTCOMES: Record<string, QuoteOutcome> = {
  c: 'created',
  u: 'updated',
  '=': 'unchanged',
  d: 'deleted',
  s: 'suppressed',
}

/**
 * Makes the receipt of a stored thread. The answer lacks the quotes that are marked as deleted.
 *
 * @param isBrief leaves out the fields that differ.
 */
export function makeReceipt(
  thread: QueuedThread,
  { source, quotes }: Omit<ThreadAnswer, 'message'>,
  isBrief = false,
): ThreadReceipt {
  const { outcome, wordCount, createdAt, id: _id, status: _status, ...fields } = source
  const sourceDiffers = isBrief ? undefined : differences(fields, sentSource(thread.source))
  const quotesDiffer: Record<string, Partial<QuoteAnswer>> = {}
  let outcomes = ''
  quotes.forEach(({ id, outcome, ...stored }) => {
    while (thread.quotes[outcomes.length]?.deleted) outcomes += LETTERS.deleted
    const index = outcomes.length
    outcomes += LETTERS[outcome]
    if (isBrief) return
    const differs = differences<Partial<QuoteAnswer>>(stored, thread.quotes[index] ?? {})
    // The words from which an id was computed may not be retained: see `payloadToRetain`.
    const withId = outcome === 'suppressed' && stored.externalId === undefined
    if (differs !== undefined) quotesDiffer[index] = withId ? { id, ...differs } : differs
  })
  while (thread.quotes[outcomes.length]?.deleted) outcomes += LETTERS.deleted
  return {
    source: { outcome, wordCount, createdAt },
    outcomes,
    ...(sourceDiffers && { sourceDiffers }),
    ...(Object.keys(quotesDiffer).length > 0 && { quotesDiffer }),
  }
}

/** Returns the receipt of a thread that was deleted while its job was in Redis. */
export function receiptOfDeleted(createdAt: string): ThreadReceipt {
  return { source: { outcome: 'deleted', wordCount: 0, createdAt }, outcomes: '' }
}

/**
 * Returns a receipt without the values of quotes, apart from their ids. Quotes that have been
 * deleted since are marked.
 */
export function receiptWithoutWords(
  { quotes }: QueuedThread,
  { source, outcomes, quotesDiffer = {} }: ThreadReceipt,
): ThreadReceipt {
  const letters = [...outcomes].map((one, at) => (quotes[at]?.deleted ? LETTERS.deleted : one))
  const ids = Object.entries(quotesDiffer).flatMap(([at, { id }]) => (id ? [[at, { id }]] : []))
  const kept = ids.length > 0 && { quotesDiffer: Object.fromEntries(ids) }
  return { source, outcomes: letters.join(''), ...kept }
}

/** Returns the outcome of a quote. All quotes of a deleted thread are `deleted`. */
export function outcomeOf({ source, outcomes }: ThreadReceipt, quote: number): QuoteOutcome {
  return OUTCOMES[outcomes[quote] ?? ''] ?? source.outcome
}

/** Builds the answer from a request and its receipt. The ids follow from the request. */
export function readReceipt(
  thread: QueuedThread,
  { source: stored, outcomes, sourceDiffers, quotesDiffer }: ThreadReceipt,
  ids: { source: string; quotes: readonly string[] },
): ThreadAnswer {
  const { title, description, ...source } = scored({
    ...sentSource(thread.source),
    ...sourceDiffers,
  })
  return {
    message: MESSAGE,
    source: { id: ids.source, title, description, ...source, ...stored, status: STORED_STATUS },
    quotes: thread.quotes.map(({ deleted: _, exportedId: _exported, ...quote }, index) => ({
      id: ids.quotes[index] ?? '',
      ...scored({ ...quote, ...quotesDiffer?.[index] }),
      outcome: outcomeOf({ source: stored, outcomes }, index),
    })),
  }
}

function sentSource({ createdAt: _, ...source }: Thread['source']) {
  return { ...source, description: source.description ?? null }
}

/** Adds a score that was never sent: it follows from the stored votes. */
function scored<Fields extends Votes>(fields: Fields): Fields {
  const score = effectiveScore(fields)
  return score === undefined ? fields : { ...fields, score }
}

function differences<Fields extends Votes>(
  stored: Fields,
  sent: Partial<Fields>,
): Partial<Fields> | undefined {
  const score = effectiveScore({
    upVotes: stored.upVotes,
    downVotes: stored.downVotes,
    score: sent.score,
  })
  let found: Partial<Fields> | undefined
  for (const name in stored) {
    if (stored[name] === (name === 'score' ? score : sent[name])) continue
    found ??= {}
    found[name] = stored[name]
  }
  return found
}
