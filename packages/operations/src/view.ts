// What people see of a queue and can do with it, depending on their role. Viewers see ids, and
// reasons without values. They see no payloads, stacks, validation errors or stored texts, because
// these quote the content of threads.
import { createDeletionRecords } from '@sluice/boot/deletion-records'
import type * as contract from '@sluice/contract'
import { type KeyRole, listExpiring, shortKeyId } from '@sluice/credentials/keys'
import { shareFor } from '@sluice/process'
import {
  createImports,
  type FoundImport,
  isJobId,
  LANES,
  orUnavailable,
  type QueueKeys,
} from '@sluice/queue'
import type { Redis } from 'ioredis'
import type { Db } from 'mongodb'
import { createErasures, createSuppressions, eraseSpeaker } from './erase/erase-speaker.ts'
import { createFailedJobs } from './failed/failed-jobs.ts'
import { createOperations, type RunOptions, runOperations } from './failed/operations.ts'
import { type MaskedReason, reasonGroupOf, VARIES } from './failed/reasons.ts'
import { createFind, createFindStored, createReadThread, type ThreadPage } from './find/find.ts'
import { createListJobs, createListRecent, createReadJob, type JobDetail } from './jobs/jobs.ts'
import { createReadHistory, createReadOverview, createReadTenant } from './overview/overview.ts'
import { judge } from './overview/verdict.ts'
import {
  createOpenDue,
  createRecordedStep,
  deleteThreads,
  type RetentionDeps,
} from './threads/delete-threads.ts'
import { createTakeStep, type StepDeps } from './threads/steps.ts'

/**
 * The caller is no operator. Only operators may act, or filter by reason: with filters, viewers
 * could guess the values that reasons quote.
 */
export class OperatorOnlyError extends Error {
  override name = 'OperatorOnlyError'
}

/**
 * A person's role: everybody who is no operator sees what viewers see. `by` names the operator in
 * the operations that the operator opens.
 */
type Person = { role: KeyRole | undefined; by: string }
type Reads = ReturnType<typeof openReads>
export type ViewFor = ReturnType<typeof openAdmin>['viewFor']
export type View = ReturnType<typeof viewOf>
export type Acts = ReturnType<typeof openActs>
export type ThreadOutline = ReturnType<typeof withoutTexts>

/**
 * Opens a queue and what is stored for people: `viewFor` shows it, and `runOperations` carries out
 * what operators asked for.
 */
export function openAdmin(redis: Redis, keys: QueueKeys, db: Db) {
  const reads = openReads(redis, keys, db)
  const suppressions = createSuppressions(redis, keys, db)
  return {
    viewFor: (person: Person) => viewOf(reads, person),
    erasures: createErasures(db, reads.operations, suppressions),
    suppressions,
    runOperations({ enqueue, findResults, retainDays, ...options }: OperationsToRun) {
      const deps = { ...reads, redis, keys, db, enqueue, findResults, retainDays }
      return runOperations({
        ...reads,
        takeThreadStep: createRecordedStep(
          { ...deps, records: createDeletionRecords(redis, keys, db) },
          createTakeStep(deps, (open) =>
            open.operation.kind === 'erase' ? eraseSpeaker(deps, open) : deleteThreads(deps, open),
          ),
        ),
        openDue: createOpenDue(deps, reads.operations),
        ...options,
      })
    },
  }
}

type OperationsToRun = Omit<RunOptions, keyof Reads | 'takeThreadStep' | 'openDue'> &
  StepDeps &
  Pick<RetentionDeps, 'retainDays'>

/**
 * Pages that refresh themselves share a grouping for this time, because grouping 100,000 jobs takes
 * a second or two.
 */
const GROUPS_SHARED_MS = 2_000

/**
 * Keys that expire soon are read from MongoDB at most once in this time, and only while somebody
 * looks at the status.
 */
const EXPIRING_SHARED_MS = 10_000

/** The verdict on a page is at most this old. */
const LATELY_MS = 1_000

/** Opens the functions that read a queue and what is stored. Their results are not masked. */
function openReads(redis: Redis, keys: QueueKeys, db: Db) {
  const failedJobs = createFailedJobs(redis, keys)
  const operations = createOperations(redis, keys)
  const imports = createImports(redis, keys)
  const readOverview = createReadOverview(redis, keys)
  const readHistory = createReadHistory(redis, keys)
  const readThread = createReadThread(db)
  const { readAny: readJob } = createReadJob(redis, keys)
  // While MongoDB is unavailable, the verdict reports that, and names no keys.
  const readExpiring = shareFor(EXPIRING_SHARED_MS, () => listExpiring(db).catch(() => []))
  return {
    failedJobs,
    operations,
    find: createFind(redis, keys, failedJobs, createFindStored(db)),
    listRecent: createListRecent(redis, keys),
    listJobs: createListJobs(redis, keys, failedJobs),
    readJob,
    readTenant: createReadTenant(redis, keys),
    listImports: imports.list,
    readHistory,
    readThread,
    readGroups: shareFor(GROUPS_SHARED_MS, () => failedJobs.groups({})),
    findOperation: async (id: string) => (isJobId(id) ? operations.find(id) : undefined),
    findImport: async (id: string) => (isJobId(id) ? imports.find(id) : undefined),
    async outlineJob(id: string) {
      const found = await readJob(id)
      return found && withoutPayload(found)
    },
    async readOutline(...query: Parameters<typeof readThread>) {
      const found = await readThread(...query)
      return found && withoutTexts(found)
    },
    readStatus,
    /** Reads the status for the verdict, which is on every page. */
    readLately: shareFor(LATELY_MS, readStatus),
  }

  async function readStatus(): Promise<contract.Status> {
    const reads = [readOverview(), readHistory(5), readHistory(60), readExpiring()] as const
    const [overview, [lastMinutes], [lastHour], expiring] = await Promise.all(reads)
    if (!lastMinutes?.point || !lastHour?.point) throw new Error('a span without a point')
    const expiringKeys = expiring.flatMap(({ id, tenant, name, expiresAt }) =>
      expiresAt
        ? [{ keyId: shortKeyId(id), tenant, name, expiresAt: expiresAt.toISOString() }]
        : [],
    )
    return { ...overview, expiringKeys, lastMinutes: lastMinutes.point, lastHour: lastHour.point }
  }
}

/**
 * Makes the view of a person. While Redis is unavailable, every read of the queue throws a
 * `QueueUnavailableError`.
 */
function viewOf(reads: Reads, { role, by }: Person) {
  const { failedJobs, operations } = reads
  const isOperator = role === 'operator'
  function read<Args extends unknown[], Value>(
    find: (...args: Args) => Promise<Value>,
    toViewers: Mask<Value>,
  ) {
    return async (...args: Args): Promise<Value> => {
      const found = await orUnavailable(find(...args))
      return isOperator ? found : toViewers(found)
    }
  }
  /** @throws {OperatorOnlyError} */
  function permitted<Filter extends { reason?: string }>(filter: Filter): Filter {
    if (!isOperator && filter.reason !== undefined) throw new OperatorOnlyError()
    return filter
  }
  // A verdict quotes reasons, so make it from what the person may see.
  async function judged(find: () => Promise<contract.Status>): Promise<contract.Status> {
    const status = await read(find, maskStatus)()
    return { ...status, verdict: judge(status) }
  }
  const list = ({ filter, ...page }: contract.FailedJobQuery) =>
    failedJobs.list({ filter: permitted(filter), ...page })
  const group = (filter: contract.FailedJobFilter) => failedJobs.groups(permitted(filter))
  return {
    listFailed: read(list, (page) => ({ ...page, jobs: page.jobs.map(masked) })),
    groupFailed: read(group, maskGroups),
    /** Returns the groups of all failed jobs, at most `GROUPS_SHARED_MS` old. */
    readGroups: read(reads.readGroups, maskGroups),
    listOperations: read(operations.list, (found) => found.map(maskOperation)),
    findOperation: read(reads.findOperation, (found) => found && maskOperation(found)),
    listImports: read(reads.listImports, (found) => found),
    findImport: read(reads.findImport, (found) => found && maskImport(found)),
    listJobs: read(reads.listJobs, ({ jobs, ...page }) => ({
      ...page,
      jobs: jobs.map(masked),
    })),
    readTenant: read(reads.readTenant, (load) => load),
    /** Reads a job in any state, without its stacks and its payload. */
    readJob: read(reads.outlineJob, (found) => found && maskDetail(found)),
    listRecent: read(reads.listRecent, ({ jobs, next }) => ({
      jobs: jobs.map(masked),
      next,
    })),
    readStatus: () => judged(reads.readStatus),
    /** Returns the status, at most `LATELY_MS` old. */
    readLately: () => judged(reads.readLately),
    readHistory: read(reads.readHistory, (points) => points),
    /** Looks up: see `createFind`. @throws {OperatorOnlyError} */
    async find(query: contract.FindQuery, signal: AbortSignal): Promise<contract.FindAnswer> {
      const found = await reads.find(permitted(query), signal)
      return isOperator ? found : maskFound(found)
    },
    /**
     * Reads a page of a stored thread, without its texts.
     * @throws {CommandFailedError}
     */
    readThread: reads.readOutline,
    /** Undefined unless the person is an operator. */
    acts: isOperator ? openActs(reads, by) : undefined,
  }
}

/**
 * What viewers see instead of each field that may quote values, wherever a result has such a field.
 */
interface Hidden {
  reason: MaskedReason
  payload: null
  stack: never[]
  detail: ''
  errors: never[]
  warnings: never[]
}

/** A result without values. */
type Masked<Value> = {
  [Name in keyof Value]: Name extends keyof Hidden ? Hidden[Name] : Masked<Value[Name]>
}

/**
 * Reduces what operators see to what viewers see. A mask that forgets a field of `Hidden` does not
 * compile.
 */
type Mask<Value> = (found: Value) => Value & Masked<Value>

/** Masks the reason of a job, a group, an attempt, a thread or a hit. */
function masked<Value extends { reason?: string }>(found: Value) {
  return { ...found, ...(found.reason !== undefined && { reason: reasonGroupOf(found.reason) }) }
}

const maskGroups: Mask<contract.FailedJobGroups> = (found) => ({
  ...found,
  groups: found.groups.map(masked),
})

const maskFound: Mask<contract.FindAnswer> = (found) => ({ ...found, hits: found.hits.map(masked) })

const maskStatus: Mask<contract.Status> = ({ storeAway, ...status }) => ({
  ...status,
  ...(storeAway && { storeAway: masked(storeAway) }),
})

const NO_PAYLOAD: Pick<Hidden, 'stack' | 'payload'> = { stack: [], payload: null }

/** Shows neither the stacks nor the payload of a job. */
const withoutPayload = <Job extends object>(job: Job) => ({ ...job, ...NO_PAYLOAD })

/** The reason in a filter was written by a person, so all of it is masked. */
const maskOperation: Mask<contract.Operation> = ({ filter, ...operation }) => {
  if (filter === undefined) return operation
  const { reason, ...fields } = filter
  return { ...operation, filter: { ...fields, ...(reason !== undefined && { reason: VARIES }) } }
}

const NO_DETAILS: Pick<Hidden, 'detail' | 'errors' | 'warnings'> = {
  detail: '',
  errors: [],
  warnings: [],
}

const maskImport: Mask<FoundImport> = ({ problems, ...found }) => ({
  ...found,
  problems: problems.map(({ refused, ...item }) =>
    refused ? { ...item, refused: { ...refused, ...NO_DETAILS } } : item,
  ),
})

/** Reduces a job without its payload to what viewers see. */
const maskDetail: Mask<JobDetail & Pick<Hidden, 'stack' | 'payload'>> = (job) => ({
  ...job,
  hit: masked(job.hit),
  tries: job.tries.map(masked),
  failedThreads: job.failedThreads.map(masked),
})

function withoutTexts({ source, quotes, ...page }: ThreadPage) {
  const { id, service, externalId, status, wordCount, createdAt } = source
  const names = quotes.map((quote) => {
    return {
      id: quote.id,
      externalId: quote.externalId,
      createdAt: quote.createdAt,
      position: quote.position,
    }
  })
  return {
    source: { id, service, externalId, status, wordCount, createdAt },
    quotes: names,
    ...page,
  }
}

/**
 * Returns what an operator may do.
 * @throws {OperatorOnlyError}
 */
export function requireActs({ acts }: View): Acts {
  if (acts === undefined) throw new OperatorOnlyError()
  return acts
}

function openActs({ failedJobs, operations, readThread, readJob }: Reads, by: string) {
  return {
    /**
     * Opens an operation on failed jobs, which an API replica then carries out.
     * @throws {OperationsFullError}
     */
    async operate(
      kind: contract.OperationKind,
      request: contract.OperationRequest,
    ): Promise<contract.Operation> {
      if ('ids' in request) return operations.open(kind, request, request.ids.length, by)
      // Bound the filter, so that a job that fails again after its retry is not retried again.
      const filter = { ...request.filter, until: request.filter.until ?? new Date().toISOString() }
      const total = await orUnavailable(failedJobs.count(filter))
      const [one] = filter.group
        ? (await orUnavailable(failedJobs.list({ filter, limit: 1 }))).jobs
        : []
      return operations.open(kind, { filter }, total, by, one?.reasonGroup)
    },
    /** Pauses or resumes a lane for all workers. Returns undefined if no lane has this name. */
    async operateLane(
      kind: contract.LaneOperationKind,
      name: unknown,
      query: contract.PauseQuery,
    ): Promise<contract.Operation | undefined> {
      const lane = LANES.find((one) => one === name)
      return lane && operations.operateLane(kind, lane, by, query)
    },
    /**
     * Opens the deletion of a tenant's keys, jobs and threads.
     * @throws {OperationsFullError}
     */
    deleteTenant: (tenant: string) => operations.open('delete', { filter: { tenant } }, 0, by),
    /**
     * Opens the deletion of a thread.
     * @throws {OperationsFullError}
     */
    deleteThread: (
      thread: Record<'tenant' | 'externalId', string> & { service: contract.Service },
    ) => operations.open('delete', { filter: thread }, 1, by),
    /** Reads a job in any state, with its stacks and its payload. */
    revealJob: (id: string) => orUnavailable(readJob(id)),
    /**
     * Reads a page of a stored thread, with its texts.
     * @throws {CommandFailedError}
     */
    revealThread: readThread,
  }
}
