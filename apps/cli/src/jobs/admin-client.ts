// Calls the API's paths under `/admin` with an operator's key: failed jobs, operations, lanes,
// look-ups and status.
import * as contract from '@sluice/contract'
import {
  type ApiOptions,
  type FindApiDeps,
  findApi,
  type KeyHolder,
  UserError,
} from '@sluice/terminal'
import { createAnswerCheck, fetchWithin, findSilence, silenceOf } from '../answers.ts'

/**
 * The API for operators. Each function throws a UserError if the API refuses the request or can't
 * be reached.
 */
export type AdminClient = Awaited<ReturnType<typeof openAdminClient>>
/** The API refused a request, and did nothing. */
class RefusedError extends UserError {}

/** No failed job has this id. */
export class NotFailedError extends UserError {}

/** The API does not answer, or can't reach Redis. */
export class SilentApiError extends UserError {}

export interface AdminDeps {
  /** Throws UserError. */
  openClient: (options: ApiOptions) => Promise<AdminClient>
  print: (line: string) => void
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
    const response = await fetchWithin()(new URL(`.${path}`, url), {
      ...init,
      headers,
      redirect: 'error',
    }).catch(unreachable)
    if (response.ok) return response
    const problem = await response.json().catch(() => undefined)
    const text = describeProblem(response.status, problem)
    const { code } = Object(problem)
    if (code === 'job_unknown') throw new NotFailedError(text)
    if (code === 'queue_unavailable') throw new SilentApiError(text)
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
 * Opens a client of the API that the options name or, without options, of this folder's API.
 * @throws {UserError}
 */
export async function openAdminClient(deps: FindApiDeps, options: ApiOptions) {
  const { url, ask } = await createAsk(deps, options, 'operator')

  /** @throws {SilentApiError} soon, also if the API hangs. */
  async function read<Answer>(check: (answer: unknown) => Answer, path: string): Promise<Answer> {
    const silence = await findSilence(url)
    if (silence !== undefined) throw new SilentApiError(silence)
    return ask(check, path)
  }

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

  return {
    list(filter: contract.FailedJobFilter, { limit, after }: { limit: number; after?: string }) {
      const page = { limit: String(limit), ...(after !== undefined && { after }) }
      return read(checks.list, `/admin/jobs?${new URLSearchParams({ ...filter, ...page })}`)
    },
    groups: (filter: contract.FailedJobFilter) =>
      read(checks.groups, `/admin/job-groups?${new URLSearchParams(filter)}`),
    show: (id: string) => read(checks.show, `/admin/jobs/${encodeURIComponent(id)}`),
    operations: () => read(checks.operations, '/admin/operations'),
    find: (query: contract.FindQuery) =>
      read(checks.found, `/admin/find?${new URLSearchParams(query)}`),
    /**
     * Returns the recently completed jobs or, with `after`, the jobs that completed since that
     * answer.
     */
    recent: (after?: string) =>
      read(
        checks.recent,
        `/admin/recent?${new URLSearchParams(after === undefined ? {} : { after })}`,
      ),
    status: () => read(checks.status, '/admin/overview'),
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
    : `The answer has the status ${status}, and is not from Sluice's API. Check the URL.`
}
