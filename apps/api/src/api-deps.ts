// The dependencies that `main.ts` passes to the parts of the API. Each part picks what it needs.
import type { Keyring, KnownKey, RefusedKey } from '@sluice/credentials/keys'
import type { Erasures, Suppressions, ViewFor } from '@sluice/operations'
import type { Logger, Readiness } from '@sluice/process'
import type * as queue from '@sluice/queue'
import type { ExportThreads } from '@sluice/store/export'
import type { SourceReads } from '@sluice/store/read'
import type { BodyParser } from './body/body-parser.ts'
import type { ApiMetrics } from './metrics.ts'
import type { RequestContext } from './request/request-context.ts'
import type { Budget, TenantTurns } from './request/shares.ts'
import type { ApiSettings } from './settings.ts'

export interface ApiDeps extends SourceReads {
  log: Logger
  metrics: ApiMetrics
  /** Counts a request that was answered with this problem. */
  noteProblem: (code: string, context: RequestContext) => void
  /**
   * Counts a request that was refused because of its key. The key is undefined if the request had
   * none.
   */
  noteRefusedKey: (key: KnownKey | RefusedKey | undefined) => void
  keyring: Pick<Keyring, 'find'>
  /** The quota of a key that has no limits of its own. */
  quota: Omit<queue.Quota, 'keyId'>
  enqueuer: Pick<
    queue.Enqueuer,
    'enqueue' | 'admit' | 'admitRead' | 'charge' | 'quotaLeft' | 'drained'
  >
  replyListener: Pick<queue.ReplyListener, 'replica' | 'wait'>
  confirmReplicated: queue.Replication['confirm']
  findClaimed: queue.Results['findClaimed']
  /**
   * Returns the job's result if it has one. If not, has the result retained, because the caller
   * gets the job's id instead.
   */
  retainResult: queue.Results['retainResult']
  /** Does the same as `retainResult`, but tries again for minutes if Redis does not answer. */
  retainLater: ReturnType<typeof queue.createRetainLater>
  /** @throws {QueueUnavailableError} */
  findJob: (tenant: string, jobId: string) => Promise<queue.FoundJob | undefined>
  /** @throws {QueueUnavailableError} */
  readRetained: queue.Results['readRetained']
  exportThreads: ExportThreads
  imports: ReturnType<typeof queue.createImports>
  viewFor: ViewFor
  erasures: Erasures
  suppressions: Suppressions
  /** Limits concurrent reads of sources (a Budget used as a semaphore: each read takes 1). */
  readBudget: Budget
  readTurns: TenantTurns
  /** The turns of large posts, which do not delay the tenant's reads. */
  postTurns: TenantTurns
  parser: Pick<BodyParser, 'thread' | 'array' | 'jobAnswer'>
  /**
   * The memory of all bodies in flight (including inflaters), and of answers that have not been
   * read yet.
   */
  bodyBudget: Pick<Budget, 'reserve' | 'isShared'>
  /**
   * The bytes of large answers to callers without a key. They count until a second after the
   * connection has closed.
   */
  publicBudget: Pick<Budget, 'reserve'>
  /** The disk space of all unread answers of imports. */
  spillBudget: Budget
  /** The delay of the event loop in the last second, at the 99th percentile. */
  loopDelay: { p99Ms: number }
  settings: ApiSettings
  readiness: () => Promise<Readiness>
  /** Aborts when the process must stop. After that, each answer closes its connection. */
  stopping: AbortSignal
  /**
   * Aborts shortly before the grace time ends. Open requests must be answered then: see
   * `LAST_ANSWERS_MS`.
   */
  graceOver: AbortSignal
}

export type MiddlewareDeps = Pick<
  ApiDeps,
  | 'metrics'
  | 'noteProblem'
  | 'noteRefusedKey'
  | 'log'
  | 'stopping'
  | 'graceOver'
  | 'loopDelay'
  | 'keyring'
  | 'quota'
> & {
  enqueuer: Pick<ApiDeps['enqueuer'], 'admit' | 'charge' | 'quotaLeft'>
  settings: Pick<ApiDeps['settings'], 'maxLoopDelayMs' | 'otlpEndpoint'>
}
