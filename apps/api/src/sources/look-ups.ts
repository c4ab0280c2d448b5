// Look-ups in the data of the caller's tenant: sources by GET and POST /sources:lookup, and GET /jobs/{id}.
import type { PageQuery } from '@sluice/contract'
import { createLookupParser, createSourcesParser, parsePageQuery, refuseField } from '@sluice/contract'
import { type FoundJob, isJobId } from '@sluice/queue'
import { sourceIdOf } from '@sluice/store/ids'
import type { ApiDeps } from '../api-deps.ts'
import { readBody } from '../body/read-body.ts'
import { chargeAnswer, jsonAnswer } from '../request/json-answer.ts'
import { jobFailed, overloaded, ProblemError, problemBody, requestInvalid } from '../request/problem-error.ts'
import { type Answer, type Handler, parseQuery, type RequestContext } from '../request/request-context.ts'
import { FREE_ANSWER_BYTES } from '../settings.ts'

export type RoomDeps = Pick<ApiDeps, 'readSpace' | 'readTurns' | 'bodyMemory'> & {
  enqueuer: Pick<ApiDeps['enqueuer'], 'quotaLeft'>
}
type ReadDeps = RoomDeps & Pick<ApiDeps, 'readSource'>

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
      return reading(deps, context, async (most) => {
        const list = await deps.listSources(context.tenant, query.list, context.signal, most)
        if (list === undefined)
          throw requestInvalid(
            refuseField('after', 'must be `next` of an earlier page of this list: same service, same since.'),
          )
        context.log.sources = list.sources.length
        return jsonAnswer(deps, context, list)
      })
    }
    Object.assign(context.log, query.name)
    return readAnswer(deps, context, sourceIdOf(context.tenant, query.name), query.page)
  }
}

const SOURCE_ID = /^[\w-]{24}$/

async function readAnswer(deps: ReadDeps, context: RequestContext, id: string, query: PageQuery): Promise<Answer> {
  if (!SOURCE_ID.test(id)) throw new ProblemError('source_unknown')
  return reading(deps, context, async (most) => {
    const page = await deps.readSource(context.tenant, id, query, context.signal, most)
    if (page === undefined) throw new ProblemError('source_unknown')
    if (query.after !== undefined && !query.after.id.startsWith(id))
      throw requestInvalid(refuseField('after', 'must be `next` of an earlier page of this source.'))
    context.log.quotes = page.quotes.length
    return jsonAnswer(deps, context, page)
  })
}

/** POST /sources:lookup: many sources without their quotes. Those that are not stored are left out. */
export function lookUpSources(deps: RoomDeps & Pick<ApiDeps, 'readSources' | 'limits'>): Handler {
  const parse = createLookupParser(deps.limits)
  return async (context) => {
    const parsed = parse(await readBody(context, deps))
    if (!parsed.ok) throw requestInvalid(parsed)
    const { tenant, signal } = context
    const { service, externalIds } = parsed.value
    const ids = new Map(externalIds.map((externalId) => [sourceIdOf(tenant, { service, externalId }), externalId]))
    return reading(deps, context, async (most) => {
      const { sources, rest } = await deps.readSources(tenant, [...ids.keys()], signal, most)
      Object.assign(context.log, { service, sources: sources.length })
      return jsonAnswer(deps, context, { sources, ...(rest.length > 0 && { rest: rest.map((id) => ids.get(id)) }) })
    })
  }
}

/**
 * Limits concurrent reads: each may scan a large source, and occupies a connection to MongoDB. After a large one, its
 * tenant rests. While the key's quota is used up, a page ends at its free size.
 */
export async function reading(
  { readSpace, readTurns, enqueuer }: RoomDeps,
  context: RequestContext,
  read: (mostCharacters?: number) => Promise<Answer>,
): Promise<Answer> {
  const { tenant, quota } = context
  if (!readSpace.take(tenant, 1)) throw overloaded()
  const isUsedUp = () => quota !== undefined && enqueuer.quotaLeft(quota) === 0
  try {
    return await readTurns.take(context, () => read(isUsedUp() ? FREE_ANSWER_BYTES : undefined))
  } finally {
    readSpace.release(tenant, 1)
  }
}

type JobDeps = RoomDeps & { enqueuer: Pick<ApiDeps['enqueuer'], 'admitRead'> } & Pick<
    ApiDeps,
    'findJob' | 'readRetained' | 'replyListener' | 'parser' | 'limits' | 'loopDelay'
  >

/** GET /jobs/{id}: its state and, once it is done, the answer that a waiting caller would have got. */
export function getJob(deps: JobDeps): Handler {
  return async (context, params) => {
    const id = String(params.id)
    context.log.jobId = id
    const found = await find(deps, context, id)
    const { wait = 0 } = context.prefer
    const isDone = found.state === 'completed' || found.state === 'failed'
    if (wait === 0 || isDone) return describe(deps, context, id, found)
    const waitMs = Math.min(wait, deps.limits.waitSeconds) * 1000
    // A job that Redis no longer knows is answered below.
    await deps.replyListener.wait(id, waitMs, context.signal, { lookUpAtOnce: true }).result.catch(() => {})
    const headers = { 'preference-applied': `wait=${wait}` }
    return { ...(await describe(deps, context, id, await find(deps, context, id))), headers }
  }
}

async function find({ findJob }: Pick<ApiDeps, 'findJob'>, { tenant }: RequestContext, id: string): Promise<FoundJob> {
  const found = isJobId(id) ? await findJob(tenant, id) : undefined
  if (found === undefined) throw new ProblemError('job_unknown')
  return found
}

/** The rate at which a tenant reads large jobs: a fifth of what a thread of a common machine builds. */
const BYTES_PER_MS = 4_000

async function describe(deps: JobDeps, context: RequestContext, id: string, found: FoundJob): Promise<Answer> {
  const { state, attempts, bytes } = found
  const job = { id, state, changedAt: found.changedAt.toISOString(), attempts }
  if (state === 'failed')
    return { status: 200, body: { ...job, problem: problemBody(jobFailed(id), `/jobs/${id}`, context.requestId) } }
  if (state !== 'completed') return { status: 200, body: job }
  async function answer(): Promise<Answer> {
    const texts = await deps.readRetained(id)
    const content = texts && (await deps.parser.jobAnswer(job, texts))
    if (!content?.length) throw new ProblemError('job_unknown')
    return { status: 200, content }
  }
  if (bytes <= FREE_ANSWER_BYTES) return answer()
  if (deps.loopDelay.p99Ms > deps.limits.maxLoopDelayMs) throw overloaded()
  deps.enqueuer.admitRead(context)
  const answerLarge = () => {
    // For the job's texts, and for the answer, which is about as long.
    deps.bodyMemory.reserve(context, 2 * bytes)
    chargeAnswer(context, bytes)
    return answer()
  }
  return deps.readTurns.take(context, answerLarge, bytes / BYTES_PER_MS)
}
