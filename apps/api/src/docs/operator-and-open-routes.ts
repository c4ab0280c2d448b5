// Describes the routes of operators and those that need no key for `/openapi.json`, each by its method and path.
import {
  FailedJobPageSchema,
  FailedJobQuerySchema,
  FailedJobSchema,
  LimitsSchema,
  LivenessSchema,
  OperationRequestSchema,
  OperationSchema,
  ReadinessSchema,
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

const JAVASCRIPT = 'text/javascript; charset=utf-8'
const CSS = 'text/css; charset=utf-8'

/** The files of the pages under `/docs` by their names in the path, a closed list. What serves them must not be loaded with their description. */
export const ASSETS = {
  'swagger-ui-bundle.js': {
    find: () => import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'),
    mediaType: JAVASCRIPT,
  },
  'swagger-ui.css': { find: () => import.meta.resolve('swagger-ui-dist/swagger-ui.css'), mediaType: CSS },
  'start-viewer.js': { find: () => import.meta.resolve('./page/start-viewer.js'), mediaType: JAVASCRIPT },
  'page.css': { find: () => import.meta.resolve('./page/page.css'), mediaType: CSS },
  'icon.svg': { find: () => import.meta.resolve('./page/icon.svg'), mediaType: 'image/svg+xml' },
} as const

export type AssetName = keyof typeof ASSETS

/** The media type of the pages. */
const HTML = 'text/html; charset=utf-8'

const READY = { ready: true, checks: { process: { ok: true }, redis: { ok: true }, replies: { ok: true } } }
const NOT_READY = { ready: false, checks: { redis: { ok: false, reason: 'not connected, or silent' } } }
const LIMITS = {
  limits: { title: { value: 2_000, unit: 'characters', description: "Length of a source's title." } },
  quota: { burstQuotes: { value: 600_000, unit: 'quotes', description: 'How many quotes one key may post at once.' } },
  queue: { queueThreads: { value: 200_000, unit: 'threads', description: 'How many threads the queue accepts.' } },
  waitSeconds: { value: 30, unit: 'seconds', description: 'The longest that a caller waits for its answer.' },
}

const FILE = { schema: { type: 'string' }, examples: { file: { summary: 'Its text', value: '…' } } }

/** The routes that need no key. */
export const OPEN_ROUTES: Readonly<Record<string, RouteDescription>> = {
  'GET /limits': {
    id: 'getLimits',
    access: 'open',
    summary: 'Every bound that a request can meet',
    answers: { 200: { description: 'The limits in force.', content: json(LimitsSchema, LIMITS) } },
  },
  'GET /livez': {
    id: 'getLiveness',
    access: 'open',
    summary: 'Whether the process is alive',
    answers: { 200: { description: 'It is.', content: json(LivenessSchema, { alive: true }) } },
  },
  'GET /readyz': {
    id: 'getReadiness',
    access: 'open',
    summary: 'Whether the process can accept requests',
    answers: {
      200: { description: 'It can.', content: json(ReadinessSchema, READY) },
      503: { description: 'It can not.', headers: ['Retry-After'], content: json(ReadinessSchema, NOT_READY) },
    },
  },
  'GET /openapi.json': {
    id: 'getDescription',
    access: 'open',
    summary: 'This description',
    answers: {
      200: { description: 'The description of the API.', content: json({ type: 'object' }, { openapi: '3.1.1' }) },
    },
  },
  'GET /docs': page('getDocs', 'A page to read and try the API'),
  'GET /docs/problems': page('getProblems', 'A page that explains every problem'),
  'GET /docs/assets/{name}': {
    id: 'getAsset',
    access: 'open',
    summary: 'A file of these pages',
    parameters: [{ name: 'name', in: 'path', required: true, schema: { type: 'string', examples: ['page.css'] } }],
    answers: {
      200: {
        description: 'The file. Its address changes with its content, so it may be kept for a year.',
        headers: ['Cache-Control', 'Content-Encoding', 'Vary', 'X-Content-Type-Options'],
        content: Object.fromEntries(Object.values(ASSETS).map(({ mediaType }) => [mediaType, FILE])),
      },
    },
  },
}

function page(id: string, summary: string): RouteDescription {
  const example = { summary: 'The page', value: '<!doctype html><html lang="en">…</html>' }
  const content = { [HTML]: { schema: { type: 'string' }, examples: { page: example } } }
  const headers = ['Cache-Control', 'Content-Security-Policy', 'X-Content-Type-Options'] as const
  return { id, access: 'open', summary, answers: { 200: { description: 'The page.', headers, content } } }
}
