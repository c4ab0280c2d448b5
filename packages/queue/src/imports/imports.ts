// Records the progress of imports that nobody waits for.
import { type Outcome, PROBLEMS_KEPT, type Problem } from '@sluice/contract'
import { openScript } from '@sluice/process/redis'
import type { Redis } from 'ioredis'
import type { CompletedJob } from '../job/job.ts'
import type { QueueKeys } from '../job/lanes.ts'

/** An item that was not stored. */
export interface ImportProblem {
  index: number
  line?: number
  externalId?: string
  /** The problem's body as POST /sources would have answered it; none if the item's job failed. */
  refused?: Problem
  /** The job that failed. */
  jobId?: string
}

interface ImportProgress {
  counts: Record<Outcome | 'failed', number>
  problems: ImportProblem[]
}

/** An import with its progress so far: at most `PROBLEMS_KEPT` problems, in the order of the input. */
export type FoundImport = NonNullable<Awaited<ReturnType<ReturnType<typeof createImports>['find']>>>

/** An import in a list. The numbers of its items and jobs are known only once all of its jobs are in Redis. */
export interface ListedImport {
  id: string
  tenant?: string
  received?: number
  jobs?: number
  jobsDone: number
}

const UNFINISHED_KEPT_MS = 31 * 24 * 60 * 60 * 1000
const FINISHED_KEPT_MS = 60 * 60 * 1000
const OUTCOMES = ['created', 'updated', 'unchanged', 'failed'] as const
const LISTED = 100
/** The most bytes of Redis for all imports. An import of 100,000 threads needs about half a megabyte. */
const IMPORT_BYTES = 64 * 1024 * 1024

/** The bounds of imports, as scripts get them. */
export function importBounds(bytes = IMPORT_BYTES) {
  return { bytes, unfinishedMs: UNFINISHED_KEPT_MS, finishedMs: FINISHED_KEPT_MS }
}

/** Keeps imports in Redis, with a hash field for each job, so that a job that completes twice counts once. */
export function createImports(redis: Redis, { base }: QueueKeys, bytes?: number) {
  const run = openScript(redis, new URL('./write-import.lua#write', import.meta.url))
  const keyOf = (id: string) => `${base}import:${id}:`

  type Fields = Record<string, string | number>
  async function write(tenant: string, id: string, hash: 'about' | 'progress', fields: Fields): Promise<void> {
    const bounds = importBounds(bytes)
    const written = { tenant, id, hash, fields: Object.entries(fields).flat().map(String) }
    let more = await run(base, JSON.stringify({ bounds, import: written }))
    while (more === 1) more = await run(base, JSON.stringify({ bounds }))
  }

  return {
    /** Call once all jobs of an import are in Redis, with the numbers of its items and jobs, and the refused items. */
    async open(
      id: string,
      {
        refused,
        ...about
      }: { tenant: string; received: number; jobs: number; failed: number; refused: ImportProblem[] },
    ): Promise<void> {
      await write(about.tenant, id, 'about', { ...about, refused: JSON.stringify(refused.slice(0, PROBLEMS_KEPT)) })
    },
    /** Records the outcome of a job that belongs to an import; recording it again replaces it. */
    async recordJob(job: CompletedJob): Promise<void> {
      const { tenant, import: own } = job.data
      if (own !== undefined) await write(tenant, own.id, 'progress', { [job.id]: progressOf(job) })
    },
    /** Lists imports by expiry, the last ones first: unfinished before finished ones, newest progress first. */
    async list(): Promise<ListedImport[]> {
      const tenants = await redis.zrange(`${base}imports:age`, '0', '-1')
      const newestOf = (tenant: string) =>
        redis.zrevrange(`${base}imports:of:${tenant}:age`, 0, LISTED - 1, 'WITHSCORES')
      const found = (await Promise.all(tenants.map(newestOf))).flatMap((ofTenant) =>
        ofTenant.flatMap((id, at) => (at % 2 === 0 ? { id, end: Number(ofTenant[at + 1]) } : [])),
      )
      const newest = found.toSorted((one, other) => other.end - one.end).slice(0, LISTED)
      return Promise.all(
        newest.map(async ({ id }) => {
          const [[tenant, received, jobs], jobsDone] = await Promise.all([
            redis.hmget(`${keyOf(id)}about`, 'tenant', 'received', 'jobs'),
            redis.hlen(`${keyOf(id)}progress`),
          ])
          return tenant ? { id, tenant, received: Number(received), jobs: Number(jobs), jobsDone } : { id, jobsDone }
        }),
      )
    },
    async find(id: string) {
      const [about, ofJobs] = await Promise.all([
        redis.hgetall(`${keyOf(id)}about`),
        redis.hvals(`${keyOf(id)}progress`),
      ])
      const { tenant, received, jobs, failed, refused = '[]' } = about
      if (tenant === undefined) return undefined
      const counts = { created: 0, updated: 0, unchanged: 0, failed: Number(failed) }
      const problems: ImportProblem[] = JSON.parse(refused)
      for (const text of ofJobs) {
        const ofJob: ImportProgress = JSON.parse(text)
        for (const outcome of OUTCOMES) counts[outcome] += ofJob.counts[outcome]
        problems.push(...ofJob.problems)
      }
      problems.sort((one, other) => one.index - other.index)
      const done = ofJobs.length >= Number(jobs)
      return { tenant, done, received: Number(received), counts, problems: problems.slice(0, PROBLEMS_KEPT) }
    },
  }
}

/** Describes the outcome of a job for its import, as Redis keeps it. */
export function progressOf({ id: jobId, data, result }: Pick<CompletedJob, 'id' | 'data' | 'result'>): string {
  const counts = { created: 0, updated: 0, unchanged: 0, failed: 0 }
  const problems: ImportProblem[] = []
  data.threads.forEach(({ source: { externalId } }, at) => {
    const receipt = result.receipts[at]
    counts[receipt?.source.outcome ?? 'failed'] += 1
    if (!receipt) problems.push({ index: data.import?.places[at] ?? at, externalId, jobId })
  })
  return JSON.stringify({ counts, problems } satisfies ImportProgress)
}
