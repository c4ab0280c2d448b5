// Asks an API for failed jobs, and to retry or discard them, with the key of an operator.
import { createInterface } from 'node:readline/promises'
import { Readable } from 'node:stream'
import type {
  FailedJob,
  FailedJobFilter,
  FailedJobGroups,
  FailedJobPage,
  FindLine,
  FindQuery,
  LaneOperationKind,
  Operation,
  OperationKind,
  OperationList,
  OperationRequest,
  RecentJobs,
  Status,
} from '@sluice/contract'
import { type ApiOptions, type FindApiDeps, findApi, type KeyKind } from '../find-api.ts'

/** The API refused a request, or can't be reached. The message is for people. */
export class AdminRequestError extends Error {
  override readonly name = 'AdminRequestError'
}

/** The API as operators use it. Every function throws AdminRequestError. */
export interface AdminClient {
  list(filter: FailedJobFilter, page: { limit: number; after?: string }): Promise<FailedJobPage>
  groups(filter: FailedJobFilter): Promise<FailedJobGroups>
  show(id: string): Promise<FailedJob>
  open(kind: OperationKind, request: OperationRequest): Promise<Operation>
  operateLane(kind: LaneOperationKind, lane: string): Promise<Operation>
  operation(id: string): Promise<Operation>
  operations(): Promise<OperationList>
  /** Yields the lines of a search as they arrive. */
  find(query: FindQuery): AsyncGenerator<FindLine>
  /** Returns the jobs that completed last, or since. */
  recent(after?: string): Promise<RecentJobs>
  status(): Promise<Status>
}

/** A page with a large filter may take a while. */
const ANSWER_MS = 30_000

export const OPERATOR_KEY: KeyKind = { name: "an operator's key", fileIn: ({ operatorKey }) => operatorKey }

/** Opens a client of the API that the options name, else of this folder's. Throws NoInstance and ApiUnknown. */
export async function openAdminClient(deps: FindApiDeps, options: ApiOptions): Promise<AdminClient> {
  const { url, apiKey: key } = await findApi(deps, options, OPERATOR_KEY)

  async function request(path: string, init: RequestInit): Promise<Response> {
    const headers = { 'x-api-key': key, ...(init.body !== undefined && { 'content-type': 'application/json' }) }
    const response = await fetch(new URL(path, url), { ...init, headers, redirect: 'error' }).catch(unreachable)
    if (response.ok) return response
    throw new AdminRequestError(describeProblem(response.status, await response.json().catch(unreachable)))
  }

  async function send(path: string, body?: unknown): Promise<unknown> {
    const signal = AbortSignal.timeout(ANSWER_MS)
    const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    return (await request(path, { ...post, signal })).json().catch(unreachable)
  }

  async function* find(query: FindQuery): AsyncGenerator<FindLine> {
    const { body } = await request(`/admin/find?${new URLSearchParams(query)}`, {})
    if (body === null) return
    try {
      for await (const line of createInterface(Readable.fromWeb(body))) yield JSON.parse(line)
    } catch (error) {
      unreachable(error)
    }
  }

  function unreachable(error: unknown): never {
    const reason = error instanceof Error ? String(error.cause ?? error.message) : String(error)
    throw new AdminRequestError(`The API at ${url} cannot be reached: ${reason}`)
  }

  // The contract's schemas describe these answers.
  return {
    list: async (filter, { limit, after }) => {
      const query = new URLSearchParams({ ...filter, limit: String(limit), ...(after !== undefined && { after }) })
      return (await send(`/admin/jobs?${query}`)) as FailedJobPage
    },
    groups: async (filter) => (await send(`/admin/job-groups?${new URLSearchParams(filter)}`)) as FailedJobGroups,
    show: async (id) => (await send(`/admin/jobs/${encodeURIComponent(id)}`)) as FailedJob,
    open: async (kind, request) => (await send(`/admin/jobs:${kind}`, request)) as Operation,
    operateLane: async (kind, lane) => (await send(`/admin/lanes/${lane}:${kind}`, {})) as Operation,
    operation: async (id) => (await send(`/admin/operations/${encodeURIComponent(id)}`)) as Operation,
    operations: async () => (await send('/admin/operations')) as OperationList,
    find,
    recent: async (after) =>
      (await send(`/admin/recent?${new URLSearchParams(after === undefined ? {} : { after })}`)) as RecentJobs,
    status: async () => (await send('/admin/overview')) as Status,
  }
}

function describeProblem(status: number, answer: unknown): string {
  const { code, detail, errors } = Object(answer)
  const faults = Array.isArray(errors) ? errors.map(({ message }) => `\n  ${message}`).join('') : ''
  return typeof detail === 'string' ? `${detail} (${status} ${code})${faults}` : `The API answered ${status}.`
}
