import assert from 'node:assert/strict'
import {
  type AcceptedAnswer,
  AcceptedAnswerSchema,
  type FailedJob,
  type FailedJobPage,
  FailedJobPageSchema,
  FailedJobSchema,
  type JobAnswer,
  JobAnswerSchema,
  type Operation,
  OperationSchema,
  type Problem,
  type ProblemCode,
  ProblemSchema,
  problemType,
  type SourceList,
  SourceListSchema,
  type SourcePage,
  SourcePageSchema,
  type ThreadAnswer,
  ThreadAnswerSchema,
} from '@sluice/contract'
import { Ajv, type ValidateFunction } from 'ajv'
import formats from 'ajv-formats'
import type { Reply } from './caller.ts'

// Every answer that a test reads must fit its documented schema.
const validator = formats.default(new Ajv({ allErrors: true, allowUnionTypes: true }))
const isThread = validator.compile<ThreadAnswer>(ThreadAnswerSchema)
const isAccepted = validator.compile<AcceptedAnswer>(AcceptedAnswerSchema)
const isJob = validator.compile<JobAnswer>(JobAnswerSchema)
const isPage = validator.compile<FailedJobPage>(FailedJobPageSchema)
const isFailedJob = validator.compile<FailedJob>(FailedJobSchema)
const isOperation = validator.compile<Operation>(OperationSchema)
const isSourcePage = validator.compile<SourcePage>(SourcePageSchema)
const isSourceList = validator.compile<SourceList>(SourceListSchema)
const isProblem = validator.compile<Problem>(ProblemSchema)

/** The stored thread of a 200. */
export function storedIn(reply: Reply): ThreadAnswer {
  return read(reply, 200, 'application/json', isThread)
}

/** The accepted thread of a 202. */
export function acceptedIn(reply: Reply): AcceptedAnswer {
  return read(reply, 202, 'application/json', isAccepted)
}

/** The job of a `GET /jobs/{id}`. */
export function jobIn(reply: Reply): JobAnswer {
  return read(reply, 200, 'application/json', isJob)
}

/** The source and quotes of a `GET /sources/{id}` or `GET /sources`. */
export function sourcePageIn(reply: Reply): SourcePage {
  return read(reply, 200, 'application/json', isSourcePage)
}

/** The jobs of a `GET /admin/jobs`. */
export function pageIn(reply: Reply): FailedJobPage {
  return read(reply, 200, 'application/json', isPage)
}

/** The job of a `GET /admin/jobs/{id}`. */
export function failedJobIn(reply: Reply): FailedJob {
  return read(reply, 200, 'application/json', isFailedJob)
}

/**
 * The operation of a `POST /admin/jobs:retry` or `:discard` (202), or of a `GET
 * /admin/operations/{id}` (200).
 */
export function operationIn(reply: Reply, status: 200 | 202): Operation {
  return read(reply, status, 'application/json', isOperation)
}

/** A list of sources. */
export function sourceListIn(reply: Reply): SourceList {
  return read(reply, 200, 'application/json', isSourceList)
}

/** The path of the job that a 202 or 504 names. */
export function jobPathIn({ headers }: Reply): string {
  const path = headers.get('location') ?? ''
  assert.match(path, /^\/jobs\/[0-9a-f-]{36}$/)
  return path
}

/** The problem of a refusal, whose members are as RFC 9457 and the service's own documents say. */
export function problemIn(reply: Reply, status: number, code: ProblemCode): Problem {
  const problem = read(reply, status, 'application/problem+json', isProblem)
  assert.equal(problem.code, code)
  assert.equal(problem.status, status)
  assert.equal(problem.type, problemType(code))
  // Every 400 lists its faults.
  if (status === 400)
    assert.ok(
      (problem.errors?.length ?? 0) > 0 && (problem.total ?? 0) >= (problem.errors?.length ?? 0),
    )
  assert.match(problem.title, /\w/)
  assert.match(problem.detail, /\w/)
  assert.equal(problem.requestId, reply.headers.get('x-request-id'))
  return problem
}

function read<T>(reply: Reply, status: number, mediaType: string, isValid: ValidateFunction<T>): T {
  assert.equal(reply.status, status, `${reply.status} ${reply.text.slice(0, 1_000)}`)
  assert.equal(reply.headers.get('content-type'), mediaType)
  assert.match(reply.headers.get('x-request-id') ?? '', /^[\x21-\x7e]{1,128}$/)
  const body: unknown = JSON.parse(reply.text)
  assert.ok(isValid(body), validator.errorsText(isValid.errors))
  return body
}
