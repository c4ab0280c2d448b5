// Describes the routes of operators for `/openapi.json`, each by its method and path.
import {
  FailedJobPageSchema,
  FailedJobQuerySchema,
  FailedJobSchema,
  OperationRequestSchema,
  OperationSchema,
} from '@sluice/contract'
import { FAILED_JOB_EXAMPLE, FAILED_JOBS_EXAMPLE, OPERATION_EXAMPLE } from './examples.ts'
import { BODY_PROBLEMS } from './importer-routes.ts'
import {
  CONTENT_ENCODING,
  idOf,
  json,
  QUOTA_HEADERS,
  queryParameters,
  type RouteDescription,
} from './route-description.ts'

/** The routes of operators. */
export const OPERATOR_ROUTES: Readonly<Record<string, RouteDescription>> = {
  'GET /admin/jobs': {
    id: 'listFailedJobs',
    access: 'operator',
    summary: 'Lists failed jobs, newest first',
    description:
      'Those that meet all given parameters. A page may have fewer jobs than `limit`: only one without `next` is the last.',
    parameters: queryParameters(FailedJobQuerySchema, {
      tenant: 'acme',
      service: 'slack',
      externalId: 'C024BE91L/1714555800.000100',
      reason: 'validation',
      since: '2024-05-01T00:00:00Z',
      until: '2024-05-02',
      limit: '20',
      after: FAILED_JOBS_EXAMPLE.next ?? '',
    }),
    answers: {
      200: { description: 'A page of failed jobs.', content: json(FailedJobPageSchema, FAILED_JOBS_EXAMPLE) },
    },
    problems: ['request_invalid', 'queue_unavailable'],
  },
  'GET /admin/jobs/{id}': {
    id: 'getFailedJob',
    access: 'operator',
    summary: 'Shows a failed job',
    description: 'With the stack of each of the last five failed tries, and the job as it was enqueued.',
    parameters: [idOf('the job')],
    answers: { 200: { description: 'The failed job.', content: json(FailedJobSchema, FAILED_JOB_EXAMPLE) } },
    problems: ['job_unknown', 'queue_unavailable'],
  },
  'POST /admin/jobs:retry': openOperation(
    'retry',
    'Runs failed jobs again',
    'Each with a full set of tries, in the background.',
  ),
  'POST /admin/jobs:discard': openOperation(
    'discard',
    'Removes failed jobs for good',
    'Their requests are lost. The work is done in the background.',
  ),
  'GET /admin/operations/{id}': {
    id: 'getOperation',
    access: 'operator',
    summary: 'The progress of an operation',
    description: 'A completed operation can be read for a week.',
    parameters: [idOf('the operation')],
    answers: { 200: { description: 'The progress so far.', content: json(OperationSchema, OPERATION_EXAMPLE) } },
    problems: ['operation_unknown', 'queue_unavailable'],
  },
}

function openOperation(kind: string, summary: string, description: string): RouteDescription {
  return {
    id: `${kind}FailedJobs`,
    access: 'operator',
    summary,
    description: `${description} Give either \`ids\`, at most 1,000, or \`filter\`; an empty filter means all failed jobs.`,
    parameters: [CONTENT_ENCODING],
    body: json(
      OperationRequestSchema,
      { filter: { tenant: 'acme', reason: 'validation' } },
      'The failed jobs of a tenant',
    ),
    answers: {
      202: {
        description: 'The operation is open. `Location` has its progress.',
        headers: ['Location', ...QUOTA_HEADERS],
        content: json(OperationSchema, { ...OPERATION_EXAMPLE, state: 'waiting', examined: 0, done: 0 }),
      },
    },
    problems: [...BODY_PROBLEMS, 'operations_full', 'queue_unavailable'],
  }
}
