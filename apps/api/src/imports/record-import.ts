// Records the outcomes of the items of an import whose caller waits, for operators.
import { type ImportEnd, isJobId, newJobId } from '@sluice/queue'
import type { ApiDeps } from '../api-deps.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { ImportGroups } from './group-items.ts'
import { type ImportRun, storeGroups } from './store-groups.ts'

const EVERY_MS = 1_000
/** The problems that are recorded every second. The record at the end has all that are kept. */
const PROBLEMS_AT_ONCE = 100

type RecordedRun = ImportRun & { deps: Pick<ApiDeps, 'imports' | 'log'>; context: RequestContext }

/**
 * Stores groups as `storeGroups` does. Records the outcomes every second and at the end, by one command of Redis each:
 * under the caller's Import-Id, so that many requests are one import, else under an id of its own.
 */
export async function* storeRecorded(groups: ImportGroups, run: RecordedRun): AsyncGenerator<string[]> {
  const { context, summary, problems, deps } = run
  const { 'import-id': sent } = context.request.headers
  const isPart = typeof sent === 'string' && isJobId(sent)
  const importId = isPart ? sent : newJobId()
  let ended: ImportEnd = 'cut'
  const request = { importId, tenant: context.tenant, by: context.key?.keyId ?? '', requestId: newJobId() }
  context.log.importId = importId
  let writing = false
  async function record(open: 0 | 1): Promise<void> {
    const { turnedAway: again, kept } = problems
    const counts = { ...summary, failed: summary.failed - again, again, open }
    writing = true
    const outcome = open
      ? { counts, problems: kept.slice(0, PROBLEMS_AT_ONCE), waitsFor: run.waitsFor?.code }
      : { counts, problems: kept }
    await deps.imports.recordRequest({ ...request, ended }, outcome).catch((err) => {
      // The import goes on without its record. The next second makes another one.
      if (!open) deps.log.error({ importId, err }, 'import.not_recorded')
    })
    writing = false
  }
  const timer = setInterval(() => !writing && void record(1), EVERY_MS)
  try {
    yield* storeGroups(groups, run)
    if (context.request.complete && !context.signal.aborted) ended = isPart ? 'part' : 'whole'
  } finally {
    clearInterval(timer)
    if (summary.received > 0 || writing) void record(0)
  }
}
