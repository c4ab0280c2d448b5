// Records the progress of an import: of its requests or, if nobody waits for the import, of its
// jobs.
import { type Outcome, PROBLEMS_KEPT, type Problem, type ProblemCode } from '@sluice/contract'
import { asList, openScript, readRedisTime, scriptJson } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import { type CompletedJob, countedOutcome, sourceNameOf } from '../job/job.ts'
import { ownStore, type QueueKeys } from '../job/lanes.ts'

/** An item that was not stored. */
export interface ImportProblem {
  index: number
  line?: number
  externalId?: string
  /** The problem with which POST /sources would have answered. Absent if the item's job failed. */
  refused?: Problem
  /** The job that failed. */
  jobId?: string
}

/**
 * The outcome of a job or of a request. Once an import has enough problems, further outcomes are
 * stored without problems.
 */
interface ImportProgress {
  counts: Counts
  problems?: ImportProblem[]
  /** The problem because of which the request waits at the moment. */
  waitsFor?: ProblemCode | undefined
}

/**
 * Numbers of items. Only requests have `received`, `again` (items that were not accepted, so the
 * caller may post them again) and `open` (1 while the request is under way).
 */
type Counts = Record<Exclude<Outcome, 'deleted'> | 'failed', number> &
  Partial<Record<'received' | 'again' | 'open', number>>

/**
 * How the last recorded request of an import ended. `whole`: it was the whole import. `part`:
 * nobody knows whether more requests come. `cut`: its body broke off, or its API was killed.
 */
export type ImportEnd = (typeof ENDS)[number]

/** A request of an import whose caller waits. `by` is the id of its key. */
interface RecordedRequest {
  importId: string
  tenant: string
  by: string
  requestId: string
  /** Is `cut` while the request is under way. */
  ended: ImportEnd
}

/**
 * An import with its progress so far, and at most `PROBLEMS_KEPT` problems in the order of the
 * input.
 */
export type FoundImport = NonNullable<Awaited<ReturnType<ReturnType<typeof createImports>['find']>>>

/**
 * An import in a list. If nobody waits for the import, its tenant and items are known only once all
 * of its jobs are in Redis.
 */
export type ListedImport = ReturnType<typeof describeImport> & { id: string }

const UNFINISHED_KEPT_MS = 31 * 24 * 60 * 60 * 1000
const FINISHED_KEPT_MS = 24 * 60 * 60 * 1000
/**
 * A request under way is recorded every second. If it was not recorded for this time, its API has
 * died.
 */
const GONE_MS = 10_000
const LISTED = 100
/**
 * The most bytes of Redis for all imports. An import of 100,000 threads needs about half a
 * megabyte.
 */
const IMPORT_BYTES = 64 * 1024 * 1024

/** If an import has many outcomes, about this number of their bytes is read. */
const PROBLEM_BYTES = 1024 * 1024

/** The bounds of imports, as scripts get them. */
export function importBounds(bytes = IMPORT_BYTES) {
  return {
    bytes,
    unfinishedMs: UNFINISHED_KEPT_MS,
    finishedMs: FINISHED_KEPT_MS,
    problems: PROBLEMS_KEPT,
  }
}

/**
 * Keeps imports in Redis. Each job or request has a hash field, so a job that completes twice
 * counts once.
 */
export function createImports(redis: Redis, { base }: QueueKeys, bytes?: number) {
  const run = openScript(redis, new URL('./write-import.lua#write', import.meta.url))
  const findOutcomes = openScript(redis, new URL('./write-import.lua#find', import.meta.url))
  const keyOf = (id: string) => `${base}import:${id}:`

  type Fields = Record<string, string | number>
  async function write(
    tenant: string,
    id: string,
    about?: Fields,
    progress?: Fields,
  ): Promise<void> {
    const bounds = importBounds(bytes)
    const listOf = (fields?: Fields) => fields && Object.entries(fields).flat().map(String)
    const written = { tenant, id, about: listOf(about), progress: listOf(progress) }
    let more = await run(base, { bounds, import: written })
    while (more === 1) more = await run(base, { bounds })
  }

  return {
    /**
     * Records an import that nobody waits for: the numbers of its items and jobs, and the refused
     * items. Call it once all jobs are in Redis.
     */
    async open(
      id: string,
      {
        refused,
        ...about
      }: {
        tenant: string
        by?: string
        received: number
        jobs: number
        failed: number
        ended?: ImportEnd
        refused: ImportProblem[]
      },
    ): Promise<void> {
      await write(about.tenant, id, {
        ...about,
        refused: JSON.stringify(refused.slice(0, PROBLEMS_KEPT)),
      })
    },
    /**
     * Records the outcome of a job if the job belongs to an import. Recording it again replaces the
     * earlier record.
     */
    async recordJob(job: CompletedJob): Promise<void> {
      const { tenant, import: own } = job.data
      if (own !== undefined) await write(tenant, own.id, undefined, { [job.id]: progressOf(job) })
    },
    /**
     * Records the outcomes of a request's items so far. Replaces the earlier record of this
     * request.
     */
    async recordRequest(
      { importId, tenant, by, requestId, ended }: RecordedRequest,
      outcome: ImportProgress,
    ): Promise<void> {
      await write(tenant, importId, { tenant, by, ended }, { [requestId]: scriptJson(outcome) })
    },
    /**
     * Lists imports by descending time of expiry: unfinished imports come before finished ones, and
     * those that progressed last come first.
     */
    async list(): Promise<ListedImport[]> {
      const [now, tenants] = await Promise.all([
        readRedisTime(redis),
        redis.zrange(`${base}imports:age`, '0', '-1'),
      ])
      const newestOf = (tenant: string) =>
        redis.zrevrange(`${ownStore(`${base}imports`, tenant)}:age`, 0, LISTED - 1, 'WITHSCORES')
      const found = (await Promise.all(tenants.map(newestOf))).flatMap((ofTenant) =>
        ofTenant.flatMap((id, at) => (at % 2 === 0 ? { id, end: Number(ofTenant[at + 1]) } : [])),
      )
      const listed = found.filter(({ end }) => end > now).sort((one, other) => other.end - one.end)
      return Promise.all(
        listed.slice(0, LISTED).map(async ({ id }) => {
          const [about, jobsDone] = await Promise.all([
            redis.hmget(`${keyOf(id)}about`, ...LISTED_FIELDS),
            redis.hlen(`${keyOf(id)}progress`),
          ])
          const fields = Object.fromEntries(
            LISTED_FIELDS.map((name, at) => [name, about[at] ?? undefined]),
          )
          return { id, ...describeImport(fields, JSON.parse(fields.totals ?? '{}'), jobsDone, now) }
        }),
      )
    },
    /**
     * Finds an import of a tenant, or of any tenant if `ofTenant` is empty. Reads a bounded number
     * of outcomes.
     */
    async find(id: string, ofTenant = '') {
      const [count, ...outcomes] = asList(
        await findOutcomes(base, id, ofTenant, PROBLEMS_KEPT, PROBLEM_BYTES),
      )
      const about: About = count === undefined ? {} : await redis.hgetall(`${keyOf(id)}about`)
      const { tenant, refused = '[]' } = about
      if (tenant === undefined) return undefined
      const totals: ImportTotals & Pick<ImportProgress, 'waitsFor'> = JSON.parse(
        about.totals ?? '{}',
      )
      const problems: ImportProblem[] = JSON.parse(refused)
      let { waitsFor } = totals
      for (const text of outcomes) {
        const outcome: ImportProgress = JSON.parse(String(text))
        problems.push(...(outcome.problems ?? []))
        waitsFor ??= outcome.waitsFor
      }
      problems.sort((one, other) => one.index - other.index)
      const described = describeImport(about, totals, Number(count), await readRedisTime(redis))
      const received = described.received ?? 0
      const ofFirst = problems.slice(0, PROBLEMS_KEPT)
      return {
        ...described,
        tenant,
        received,
        problems: ofFirst,
        ...(!described.done && waitsFor && { waitsFor }),
      }
    },
  }
}

const ENDS = ['whole', 'part', 'cut'] as const
const LISTED_FIELDS = ['tenant', 'by', 'received', 'jobs', 'failed', 'totals', 'ended'] as const
type ImportTotals = Partial<Counts & Record<'begunAt' | 'changedAt', number>>
type About = Readonly<Partial<Record<string, string>>>

/**
 * @param jobsDone the number of completed jobs, if nobody waits for the import: otherwise it has no
 * jobs.
 * @param now by the clock of Redis, in ms since 1970.
 */
function describeImport(
  { tenant, by, received, jobs, failed: refused, ended }: About,
  totals: ImportTotals,
  jobsDone: number,
  now: number,
) {
  const {
    created = 0,
    updated = 0,
    unchanged = 0,
    failed = 0,
    again = 0,
    open = 0,
    begunAt,
    changedAt,
  } = totals
  const isWaitedFor = tenant !== undefined && jobs === undefined
  const isOver = open === 0 || now - (changedAt ?? 0) > GONE_MS
  return {
    tenant,
    /** The id of the key. */
    by,
    isWaitedFor,
    received: received === undefined ? totals.received : Number(received),
    counts: { created, updated, unchanged, failed: failed + Number(refused ?? 0) },
    /** The items that were not accepted. The caller may have posted them again since. */
    again,
    /** How the import ended, once it is done. */
    ended: ENDS.find((one) => one === ended) ?? 'whole',
    done: isWaitedFor ? isOver : jobsDone >= Number(jobs),
    /** When the first and the last outcome were recorded, in ms since 1970. */
    begunAt,
    changedAt,
  }
}

/** Describes the outcome of a job in the form in which its import stores it. */
export function progressOf({
  id: jobId,
  data,
  result,
}: Pick<CompletedJob, 'id' | 'data' | 'result'>): string {
  const counts = { created: 0, updated: 0, unchanged: 0, failed: 0 }
  const problems: ImportProblem[] = []
  data.threads.forEach((thread, at) => {
    const receipt = result.receipts[at]
    const outcome = receipt ? countedOutcome(data, at, receipt) : 'failed'
    counts[outcome === 'deleted' ? 'unchanged' : outcome] += 1
    const { externalId } = sourceNameOf(thread)
    if (!receipt) problems.push({ index: data.import?.places[at] ?? at, externalId, jobId })
  })
  return scriptJson({ counts, problems } satisfies ImportProgress)
}
