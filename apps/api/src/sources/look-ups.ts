// Look-ups in the data of the caller's tenant: sources by GET and POST /sources:lookup, and GET /jobs/{id}.
import type { JobAnswer, PageQuery } from '@sluice/contract'
import { createLookupParser, createSourcesParser, parsePageQuery, refuseField } from '@sluice/contract'
import { type FoundJob, isJobId } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import type { ApiDeps } from '../api-deps.ts'
import { readBody } from '../body/read-body.ts'
import { jobFailed, overloaded, ProblemError, problemBody, requestInvalid } from '../request/problem-error.ts'
import { type Answer, type Handler, parseQuery, type RequestContext } from '../request/request-context.ts'
import { threadAnswer } from './post-source.ts'

type ReadDeps = Pick<ApiDeps, 'readSource' | 'readSpace' | 'bodyMemory'>

/** GET /sources/{id}: a source by its id, with a page of its quotes. */
export function getSource(deps: ReadDeps): Handler {
  return async (context, { id }) => readAnswer(deps, context, String(id), parseQuery(context, parsePageQuery))
}

/** GET /sources: finds a source by `service` and `externalId`. Without `externalId`, lists the tenant's sources. */
export function getSources(deps: ReadDeps & Pick<ApiDeps, 'listSources' | 'limits'>): Handler {
  const parseSources = createSourcesParser(deps.limits)
  return async (context) => {
    const query = parseQuery(context, parseSources)
    if ('list' in query) {
      const { tenant } = context
      const list = await reading(deps, context, () => deps.listSources(tenant, query.list, context.signal))
      if (list === undefined)
        throw requestInvalid(
          refuseField('after', 'must be `next` of an earlier page of this list: same service, same since.'),
        )
      context.log.sources = list.sources.length
      return jsonAnswer(deps, context, list)
    }
    Object.assign(context.log, query.name)
    return readAnswer(deps, context, sourceIdOf(context.tenant, query.name), query.page)
  }
}

const SOURCE_ID = /^[\w-]{24}$/

async function readAnswer(deps: ReadDeps, context: RequestContext, id: string, query: PageQuery): Promise<Answer> {
  const { tenant } = context
  const read = () => deps.readSource(tenant, id, query, context.signal)
  const page = SOURCE_ID.test(id) ? await reading(deps, context, read) : undefined
  if (page === undefined) throw new ProblemError('source_unknown')
  if (query.after !== undefined && !query.after.id.startsWith(id))
    throw requestInvalid(refuseField('after', 'must be `next` of an earlier page of this source.'))
  context.log.quotes = page.quotes.length
  return jsonAnswer(deps, context, page)
}

function jsonAnswer(deps: Pick<ReadDeps, 'bodyMemory'>, context: RequestContext, body: object): Answer {
  const content = JSON.stringify(body)
  // The answer stays in memory until its caller has read it.
  deps.bodyMemory.reserve(context, content.length)
  return { status: 200, content }
}

/** POST /sources:lookup: many sources without their quotes. Those that are not stored are left out. */
export function lookUpSources(deps: Pick<ApiDeps, 'readSources' | 'readSpace' | 'bodyMemory' | 'limits'>): Handler {
  const parse = createLookupParser(deps.limits)
  return async (context) => {
    const parsed = parse(await readBody(context, deps))
    if (!parsed.ok) throw requestInvalid(parsed)
    const { tenant, signal } = context
    const { service, externalIds } = parsed.value
    const ids = new Set(externalIds.map((externalId) => sourceIdOf(tenant, { service, externalId })))
    const sources = await reading(deps, context, () => deps.readSources(tenant, [...ids], signal))
    Object.assign(context.log, { service, sources: sources.length })
    return jsonAnswer(deps, context, { sources })
  }
}

/** Limits concurrent reads: each may scan a large source, and occupies a connection to MongoDB. */
async function reading<Found>(
  { readSpace }: Pick<ReadDeps, 'readSpace'>,
  { tenant, signal }: RequestContext,
  read: () => Promise<Found>,
): Promise<Found> {
  if (!readSpace.take(tenant, 1)) throw overloaded()
  try {
    return await read()
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    readSpace.release(tenant, 1)
  }
}

/** GET /jobs/{id}: its state and, once it is done, the answer that a waiting caller would have got. */
export function getJob(deps: Pick<ApiDeps, 'findJob' | 'replyListener' | 'limits'>): Handler {
  return async (context, params) => {
    const id = String(params.id)
    context.log.jobId = id
    const found = await find(deps, context, id)
    const { wait = 0 } = context.prefer
    const isDone = found.state === 'completed' || found.state === 'failed'
    if (wait === 0 || isDone) return { status: 200, body: describe(context, id, found) }
    const waitMs = Math.min(wait, deps.limits.waitSeconds) * 1000
    // A job that Redis no longer knows is answered below.
    await deps.replyListener.wait(id, waitMs, context.signal, { lookUpAtOnce: true }).result.catch(() => {})
    const headers = { 'preference-applied': `wait=${wait}` }
    return { status: 200, body: describe(context, id, await find(deps, context, id)), headers }
  }
}

async function find({ findJob }: Pick<ApiDeps, 'findJob'>, { tenant }: RequestContext, id: string): Promise<FoundJob> {
  const found = isJobId(id) ? await findJob(id) : undefined
  // A tenant must not even learn that another tenant's job exists.
  if (found?.tenant !== tenant) throw new ProblemError('job_unknown')
  return found
}

function describe(
  { tenant, requestId }: RequestContext,
  id: string,
  { thread, state, changedAt, attempts, result }: FoundJob,
): JobAnswer {
  const answer: JobAnswer = { id, state, changedAt: changedAt.toISOString(), attempts }
  if (result === undefined) return answer
  const [receipt] = result.receipts
  if (receipt) return { ...answer, result: threadAnswer(tenant, thread, receipt) }
  return { ...answer, problem: problemBody(jobFailed(id), `/jobs/${id}`, requestId) }
}
