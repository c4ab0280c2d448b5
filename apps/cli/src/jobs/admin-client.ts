// Asks an API for failed jobs, and to retry or discard them, with the key of an operator.
import { createInterface } from 'node:readline/promises'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
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
import { UserError } from '../errors.ts'
import { type ApiOptions, type FindApiDeps, findApi } from '../find-api.ts'

/** The API as operators use it. Every function throws UserError if the API refuses, or can't be reached. */
export type AdminClient = Awaited<ReturnType<typeof openAdminClient>>

export interface AdminDeps {
  /** Throws UserError. */
  openClient: (options: ApiOptions) => Promise<AdminClient>
  print: (line: string) => void
}

/** Looks again and again, until the process is interrupted. Only the first look may fail: a later one shows why. */
export async function watch(look: () => Promise<void>, everyMs: number, show: (line: string) => void): Promise<never> {
  await look()
  for (let shown = ''; ; ) {
    await delay(everyMs)
    const fault = await look().catch((error) => error)
    if (fault && !(fault instanceof UserError)) throw fault
    if (fault && fault.message !== shown) show(fault.message)
    shown = fault ? fault.message : ''
  }
}

/** A page with a large filter may take a while. */
const ANSWER_MS = 30_000

/** Opens a client of the API that the options name, else of this folder's. Throws UserError. */
export async function openAdminClient(deps: FindApiDeps, options: ApiOptions) {
  const { url, apiKey: key } = await findApi(deps, options, 'operator')

  async function request(path: string, init: RequestInit): Promise<Response> {
    const headers = { 'x-api-key': key, ...(init.body !== undefined && { 'content-type': 'application/json' }) }
    const response = await fetch(new URL(path, url), { ...init, headers, redirect: 'error' }).catch(unreachable)
    if (response.ok) return response
    throw new UserError(describeProblem(response.status, await response.json().catch(unreachable)))
  }

  /** The contract's schemas describe the answers. */
  async function ask<Answer>(path: string, body?: object): Promise<Answer> {
    const signal = AbortSignal.timeout(ANSWER_MS)
    const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    return (await (await request(path, { ...post, signal })).json().catch(unreachable)) as Answer
  }

  /** Yields the lines of a search as they arrive. */
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
    throw new UserError(`The API at ${url} cannot be reached: ${reason}`)
  }

  return {
    list: (filter: FailedJobFilter, { limit, after }: { limit: number; after?: string }) => {
      const query = new URLSearchParams({ ...filter, limit: String(limit), ...(after !== undefined && { after }) })
      return ask<FailedJobPage>(`/admin/jobs?${query}`)
    },
    groups: (filter: FailedJobFilter) => ask<FailedJobGroups>(`/admin/job-groups?${new URLSearchParams(filter)}`),
    show: (id: string) => ask<FailedJob>(`/admin/jobs/${encodeURIComponent(id)}`),
    open: (kind: OperationKind, request: OperationRequest) => ask<Operation>(`/admin/jobs:${kind}`, request),
    operateLane: (kind: LaneOperationKind, lane: string) => ask<Operation>(`/admin/lanes/${lane}:${kind}`, {}),
    operation: (id: string) => ask<Operation>(`/admin/operations/${encodeURIComponent(id)}`),
    operations: () => ask<OperationList>('/admin/operations'),
    find,
    /** Returns the jobs that completed last, or since. */
    recent: (after?: string) =>
      ask<RecentJobs>(`/admin/recent?${new URLSearchParams(after === undefined ? {} : { after })}`),
    status: () => ask<Status>('/admin/overview'),
  }
}

function describeProblem(status: number, answer: unknown): string {
  const { code, detail, errors } = Object(answer)
  const faults = Array.isArray(errors) ? errors.map(({ message }) => `\n  ${message}`).join('') : ''
  return typeof detail === 'string' ? `${detail} (${status} ${code})${faults}` : `The API answered ${status}.`
}
