// Calls the API's paths under `/admin` with an operator's key: failed jobs, operations, lanes,
// look-ups and status.
import { setTimeout as delay } from 'node:timers/promises'
import * as contract from '@sluice/contract'
import {
  type ApiOptions,
  type FindApiDeps,
  findApi,
  type KeyHolder,
  UserError,
} from '@sluice/terminal'
import { createAnswerCheck, createBoundedFetch, findSilence, silenceOf } from '../answers.ts'

/**
 * The API for operators. Each function throws a UserError if the API refuses the request or can't
 * be reached.
 */
export type AdminClient = Awaited<ReturnType<typeof openAdminClient>>
/** What a client reads. It can read this from Redis and MongoDB as well. */
export interface Reads {
  list(
    filter: contract.FailedJobFilter,
    page: { limit: number; after?: string },
  ): Promise<contract.FailedJobPage>
  groups(filter: contract.FailedJobFilter): Promise<contract.FailedJobGroups>
  show(id: string): Promise<contract.FailedJob>
  operations(): Promise<{ operations: contract.Operation[] }>
  find(query: contract.FindQuery): Promise<contract.FindAnswer>
  /**
   * Returns the recently completed jobs or, with `after`, the jobs that completed since that
   * answer.
   */
  recent(after?: string): Promise<{ jobs: contract.Hit[]; next: string }>
  status(): Promise<contract.Status>
}

/** The API refused a request, and did nothing. */
class RefusedError extends UserError {}

/** No failed job has this id. */
export class NotFailedError extends UserError {}

/** How to read while the API does not answer. */
export interface Fallback {
  /** Says why the API was not asked. */
  show: (line: string) => void
  /**
   * Reads from Redis and MongoDB.
   * @throws {UserError}
   */
  readDirectly: <Answer>(ask: (reads: Reads) => Promise<Answer>) => Promise<Answer>
}

export interface AdminDeps {
  /** Throws UserError. */
  openClient: (options: ApiOptions) => Promise<AdminClient>
  print: (line: string) => void
}

/**
 * Calls `look` every `everyMs` until the process is interrupted. If the first call fails, throws
 * its error. Shows later UserErrors.
 */
export async function watch(
  look: () => Promise<void>,
  everyMs: number,
  show: (line: string) => void,
): Promise<never> {
  await look()
  for (let shown = ''; ; ) {
    await delay(everyMs)
    const failure = await look().catch((error) => error)
    if (failure && !(failure instanceof UserError)) throw failure
    if (failure && failure.message !== shown) show(failure.message)
    shown = failure ? failure.message : ''
  }
}

const checks = {
  list: createAnswerCheck(contract.FailedJobPageSchema),
  groups: createAnswerCheck(contract.FailedJobGroupsSchema),
  show: createAnswerCheck(contract.FailedJobSchema),
  operation: createAnswerCheck(contract.OperationSchema),
  operations: createAnswerCheck(contract.OperationListSchema),
  found: createAnswerCheck(contract.FindAnswerSchema),
  recent: createAnswerCheck(contract.RecentJobsSchema),
  status: createAnswerCheck(contract.StatusSchema),
}

/** Makes the function that asks the API that the options name. @throws {UserError} */
export async function createAsk(deps: FindApiDeps, options: ApiOptions, holder: KeyHolder) {
  const { url, apiKey: key } = await findApi(deps, options, holder)
  return { url, ask }

  async function request(path: string, init: RequestInit): Promise<Response> {
    const headers = {
      'x-api-key': key,
      ...(init.body !== undefined && { 'content-type': 'application/json' }),
    }
    const response = await createBoundedFetch()(new URL(`.${path}`, url), {
      ...init,
      headers,
      redirect: 'error',
    }).catch(unreachable)
    if (response.ok) return response
    const problem = await response.json().catch(() => undefined)
    const text = describeProblem(response.status, problem)
    if (Object(problem).code === 'job_unknown') throw new NotFailedError(text)
    throw response.status < 500 ? new RefusedError(text) : new UserError(text)
  }

  /** Sends the body by POST, or reads without one. */
  async function ask<Answer>(
    check: (answer: unknown) => Answer,
    path: string,
    body?: object,
  ): Promise<Answer> {
    const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    return check(await (await request(path, post)).json().catch(unreachable))
  }

  function unreachable(error: unknown): never {
    throw new UserError(silenceOf(url, error))
  }
}

/**
 * Opens a client of the API that the options name or, without options, of this folder's API. With a
 * fallback, it reads from Redis and MongoDB while the API does not answer. Changes always need the
 * API.
 * @throws {UserError}
 */
export async function openAdminClient(deps: FindApiDeps, options: ApiOptions, fallback?: Fallback) {
  const { url, ask } = await createAsk(deps, options, 'operator')

  /**
   * Opens an operation. If the API hangs, sends nothing, because the API could carry out the
   * operation much later.
   */
  async function operate(path: string, body: object): Promise<contract.Operation> {
    const silence = await findSilence(url)
    if (silence !== undefined) throw new UserError(`Nothing was changed. ${silence}`)
    try {
      return await ask(checks.operation, path, body)
    } catch (error) {
      if (error instanceof RefusedError || !(error instanceof UserError)) throw error
      throw new UserError(
        `${error.message} Later, \`sluice jobs operations\` shows whether it was accepted all the same.`,
      )
    }
  }

  const reads: Reads = {
    list: (filter, { limit, after }) => {
      const query = new URLSearchParams({
        ...filter,
        limit: String(limit),
        ...(after !== undefined && { after }),
      })
      return ask(checks.list, `/admin/jobs?${query}`)
    },
    groups: (filter) => ask(checks.groups, `/admin/job-groups?${new URLSearchParams(filter)}`),
    show: (id) => ask(checks.show, `/admin/jobs/${encodeURIComponent(id)}`),
    operations: () => ask(checks.operations, '/admin/operations'),
    find: (query) => ask(checks.found, `/admin/find?${new URLSearchParams(query)}`),
    recent: (after) =>
      ask(
        checks.recent,
        `/admin/recent?${new URLSearchParams(after === undefined ? {} : { after })}`,
      ),
    status: () => ask(checks.status, '/admin/overview'),
  }

  let isNoted = false
  async function read<Answer>(from: (reads: Reads) => Promise<Answer>): Promise<Answer> {
    const silence = await findSilence(url)
    if (silence === undefined) {
      isNoted = false
      return from(reads)
    }
    if (fallback === undefined) throw new UserError(silence)
    if (!isNoted) fallback.show(`${silence} This is read from Redis.`)
    isNoted = true
    return fallback.readDirectly(from)
  }

  return {
    list: (...args: Parameters<typeof reads.list>) => read((from) => from.list(...args)),
    groups: (filter: contract.FailedJobFilter) => read((from) => from.groups(filter)),
    show: (id: string) => read((from) => from.show(id)),
    operations: () => read((from) => from.operations()),
    find: (query: contract.FindQuery) => read((from) => from.find(query)),
    recent: (after?: string) => read((from) => from.recent(after)),
    status: () => read((from) => from.status()),
    open: (kind: contract.OperationKind, request: contract.OperationRequest) =>
      operate(`/admin/jobs:${kind}`, request),
    operateLane: (
      kind: contract.LaneOperationKind,
      lane: string,
      { why, seconds }: contract.PauseQuery,
    ) => {
      const query = new URLSearchParams({
        ...(why && { why }),
        ...(seconds && { seconds: String(seconds) }),
      })
      return operate(`/admin/lanes/${lane}:${kind}?${query}`, {})
    },
    /** Returns an operation that the API has accepted. */
    async operation(id: string): Promise<contract.Operation> {
      const silence = await findSilence(url)
      if (silence === undefined)
        return ask(checks.operation, `/admin/operations/${encodeURIComponent(id)}`)
      const found = `Operation ${id} was accepted, and goes on when an API runs: see \`sluice jobs operations\`.`
      throw new UserError(`${silence} ${found}`)
    },
  }
}

function describeProblem(status: number, answer: unknown): string {
  const { code, detail, errors } = Object(answer)
  const messages = Array.isArray(errors)
    ? errors.map((error) => `\n  ${Object(error).message}`).join('')
    : ''
  return typeof detail === 'string'
    ? `${detail} (${status} ${code})${messages}`
    : `The API answered ${status}.`
}
