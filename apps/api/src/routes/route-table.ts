// The route table of the API. The router, the allowed methods and the OpenAPI document derive from
// it.
import * as contract from '@sluice/contract'
import { LANES } from '@sluice/queue'
import { getFailedJob, getOperation, openOperation, operateLane, show } from '../admin/admin.ts'
import {
  ASSETS,
  getAsset,
  getDescription,
  getDocs,
  getProblemsPage,
  redirectTo,
} from '../docs/pages.ts'
import { getImport, postDeletions, postImport } from '../imports/post-import.ts'
import { getJob } from '../jobs/get-job.ts'
import { parseQuery } from '../request/request-context.ts'
import { IMPORT_ITEMS, limitsAnswer } from '../settings.ts'
import {
  deleteNamedQuote,
  deleteNamedSource,
  deleteQuote,
  deleteSource,
  deleteSuppression,
  getErasure,
  getErasures,
  getSuppressions,
  postErasure,
} from '../sources/deletions.ts'
import { exportSources, getSource, getSources, lookUpSources } from '../sources/get-sources.ts'
import { postSource } from '../sources/post-source.ts'
import type { Content, Route } from './route.ts'
import * as content from './route.ts'

const { describeRoutes, idOf, json, pathParameter, queryParameters } = content

type Described = Omit<Route, 'id' | 'method' | 'path' | 'access' | 'bound' | 'handler'>

const routeOf =
  (method: Route['method']) =>
  (
    id: string,
    path: string,
    access: Route['access'],
    bound: Route['bound'],
    handler: Route['handler'],
    described: Described,
  ): Route => {
    return { id, method, path, access, bound, handler, ...described }
  }
const get = routeOf('get')
const post = routeOf('post')

const LATER = ['Location', 'Preference-Applied'] as const

const READ_PROBLEMS: readonly contract.ProblemCode[] = [
  'source_unknown',
  'store_unavailable',
  'stopping',
]

const SORTED =
  'The quotes are sorted by `createdAt` and then `position` if every quote has a date, else by `position`. Only one page without `next` is the last.'

/** All routes, in the order of the document. */
export function apiRoutes(limits: contract.Limits): Route[] {
  return [
    ...importerRoutes(limits),
    ...deletionRoutes(limits),
    ...erasureRoutes(),
    ...OPERATOR_ROUTES,
    ...OPEN_ROUTES,
  ]
}

function importerRoutes(limits: contract.Limits): Route[] {
  const thread = contract.ThreadRequestSchema(limits)
  return [
    post('postSource', '/sources', 'importer', 'request', postSource, {
      summary: 'Stores a source with its quotes',
      description:
        'Merges the source into the stored one. By default the answer comes when everything is stored. Posting the same again is safe and answers `unchanged`. Unknown fields are ignored.',
      parameters: [content.PREFER, content.IDEMPOTENCY_KEY],
      body: content.threadContent(thread),
      answers: {
        200: ['The source and its quotes are stored.', content.STORED, ['Preference-Applied']],
        202: [
          'The request is in the queue, and its caller prefers not to wait.',
          content.ACCEPTED,
          LATER,
        ],
      },
      problems: ['idempotency_key_reused', 'job_failed', 'job_pending'],
    }),
    get('findSource', '/sources', 'importer', 'page', getSources, {
      summary: 'Shows the source of a name, with a page of its quotes, or lists sources',
      description: `With \`service\` and \`externalId\`, one source. ${SORTED} Without \`externalId\`, if the service lists sources (\`LIST_SOURCES\`), a page of your tenant's sources, those first that were first accepted last; \`service\` and \`since\` filter. It may have fewer sources than \`limit\`.`,
      parameters: queryParameters(contract.SourcesQuerySchema(limits), content.SOURCE_EXAMPLES),
      answers: {
        200: [
          'It, or them.',
          json({ anyOf: [contract.SourcePageSchema, contract.SourceListSchema] }),
        ],
      },
      problems: READ_PROBLEMS,
    }),
    get('getSource', '/sources/{id}', 'importer', 'page', getSource, {
      summary: 'Shows the source of an id, with a page of its quotes',
      description: SORTED,
      parameters: [
        pathParameter(
          'id',
          content.SOURCE_ID_SCHEMA,
          'The id of the source, from an answer to POST.',
        ),
        ...queryParameters(contract.SourcePageQuerySchema, content.PAGE_EXAMPLES),
      ],
      answers: { 200: ['The source.', json(contract.SourcePageSchema)] },
      problems: READ_PROBLEMS,
    }),
    post('lookUpSources', '/sources:lookup', 'importer', 'page', lookUpSources, {
      summary: 'Shows the stored ones of many sources, without their quotes',
      description:
        'Sources that are not stored are left out. It charges no quota, and works while the queue is full.',
      body: content.lookupContent(contract.LookupRequestSchema(limits)),
      onlyReads: true,
      answers: { 200: ['The stored sources.', json(contract.LookupAnswerSchema)] },
      problems: ['store_unavailable'],
    }),
    get('exportSources', '/sources:export', 'exporter', 'stream', exportSources, {
      summary: 'Exports the threads of a tenant, as they can be posted again',
      description: `Each line is a thread in the form of a post, which stores it with the same ids. A thread with more than 5,000 quotes, or a million characters, has several lines. If another page follows, the last line is \`{"next":"…"}\`.`,
      parameters: queryParameters(contract.ExportQuerySchema(limits), content.EXPORT_EXAMPLES),
      answers: { 200: ['A page of threads.', content.exportContent(thread)] },
      problems: ['store_unavailable', 'stopping'],
    }),
    post('postImport', '/sources:batch', 'importer', 'items', postImport, {
      summary: 'Stores many sources, each on its own',
      description: `Send a thread on each line (\`${contract.NDJSON}\`), or an array of at most ${IMPORT_ITEMS.value}. A refused item harms no other. The answer has a result for each item, in their order, and then a summary.`,
      parameters: [content.PREFER, content.IMPORT_ID],
      body: content.threadsContent(thread, IMPORT_ITEMS.value),
      answers: {
        200: [
          'The results of all items, as lines or as one object, as the items were sent.',
          content.IMPORT,
        ],
        202: [
          'All items are in the queue. Their caller does not wait.',
          json(contract.ImportProgressSchema),
          LATER,
        ],
      },
      problemHeaders: ['Location'],
    }),
    get('getImport', '/batches/{id}', 'importer', 'entries', getImport, {
      summary: 'The progress of an import',
      description:
        'Of an import that was answered 202, or of the requests with an `Import-Id`. It can be read until a day after its last item.',
      parameters: [idOf('the import')],
      answers: { 200: ['The progress so far.', json(contract.ImportProgressSchema)] },
      problems: ['import_unknown', 'queue_unavailable'],
    }),
    get('getJob', '/jobs/{id}', 'importer', 'size', getJob, {
      summary: 'The state of a job',
      description:
        'Once the job is done, with the very answer that a waiting caller would have got.',
      parameters: [idOf('the job'), content.PREFER_WAIT],
      answers: {
        200: [
          'The job, with what came of it.',
          json(contract.JobAnswerSchema),
          ['Preference-Applied'],
        ],
      },
      problems: ['job_unknown', 'queue_unavailable', 'rate_limited'],
    }),
  ]
}

function erasureRoutes(): Route[] {
  const ofTenant = queryParameters(contract.DeleteByIdQuerySchema, { tenant: 'acme' })
  return [
    post('erase', '/erasures', 'deleter', 'entries', postErasure, {
      summary: "Erases a person's quotes",
      description:
        'In all threads that were accepted before, in the background. The quotes keep their ids, places, votes and replies. Title, description and URL of a source go, too, if they name the speaker or repeat one of the quotes. What is posted later is stored, or with `suppress` redacted.',
      onlyReads: true,
      parameters: ofTenant,
      body: json(contract.ErasureRequestSchema, { speaker: 'Ada', service: 'slack' }),
      answers: {
        202: [
          'It is open. `Location` has its progress.',
          json(contract.ErasureSchema),
          ['Location'],
        ],
      },
      problems: ['operations_full', 'queue_unavailable', 'store_unavailable'],
    }),
    get('listErasures', '/erasures', 'deleter', 'entries', getErasures, {
      summary: 'Lists erasures, newest first',
      parameters: ofTenant,
      answers: { 200: ['The erasures.', json(contract.ErasureListSchema)] },
      problems: ['queue_unavailable'],
    }),
    get('getErasure', '/erasures/{id}', 'deleter', 'entries', getErasure, {
      summary: 'The progress of an erasure',
      description: 'A completed erasure can be read for a week.',
      parameters: [idOf('the erasure'), ...ofTenant],
      answers: { 200: ['The progress so far.', json(contract.ErasureSchema)] },
      problems: ['operation_unknown', 'queue_unavailable'],
    }),
    get('listSuppressions', '/suppressions', 'deleter', 'entries', getSuppressions, {
      summary: 'Lists suppressions, by the hashes of the speakers',
      parameters: queryParameters(contract.SuppressionsQuerySchema, {
        tenant: 'acme',
        limit: 20,
        after: content.SUPPRESSION_ID,
      }),
      answers: { 200: ['A page of suppressions.', json(contract.SuppressionListSchema)] },
      problems: ['store_unavailable'],
    }),
    routeOf('delete')(
      'endSuppression',
      '/suppressions/{id}',
      'deleter',
      'fixed',
      deleteSuppression,
      {
        summary: 'Ends a suppression',
        description: 'What is posted later is stored as it is sent.',
        onlyReads: true,
        parameters: [
          pathParameter('id', { examples: [content.SUPPRESSION_ID] }, 'The id of the suppression.'),
          ...ofTenant,
        ],
        answers: {
          200: ['It has ended, or there was none.', json(contract.EndedSuppressionSchema)],
        },
        problems: ['queue_unavailable', 'store_unavailable'],
      },
    ),
  ]
}

function deletionRoutes(limits: contract.Limits): Route[] {
  const examples = { ...content.SOURCE_EXAMPLES, tenant: 'acme' }
  const ofId = pathParameter('id', content.SOURCE_ID_SCHEMA, 'The id of the source.')
  const ofQuote = pathParameter('quoteId', content.QUOTE_ID_SCHEMA, 'The id of the quote.')
  type Query = Parameters<typeof queryParameters>[0]
  const byId: Query = contract.DeleteByIdQuerySchema

  const deletion = (
    id: string,
    path: string,
    handler: Route['handler'],
    summary: string,
    query: Query,
    ...inPath: content.Parameter[]
  ) =>
    routeOf('delete')(id, path, 'deleter', 'fixed', handler, {
      summary,
      description:
        'What was accepted before is never seen again. What is accepted later is stored as if nothing had been there.',
      parameters: [
        ...inPath,
        ...queryParameters(query, examples),
        content.PREFER,
        content.IDEMPOTENCY_KEY,
      ],
      answers: {
        200: ['It is deleted, or was not stored.', content.DELETED],
        202: [
          'It is in the queue, and its caller prefers not to wait.',
          content.DELETION_ACCEPTED,
          LATER,
        ],
      },
      problems: ['source_unknown', 'idempotency_key_reused', 'job_failed', 'job_pending'],
    })

  return [
    deletion(
      'deleteSourceByName',
      '/sources',
      deleteNamedSource,
      'Deletes the source of a name, with its quotes',
      contract.DeleteSourceQuerySchema(limits),
    ),
    deletion(
      'deleteSource',
      '/sources/{id}',
      deleteSource,
      'Deletes the source of an id, with its quotes',
      byId,
      ofId,
    ),
    deletion(
      'deleteQuoteByName',
      '/sources/{id}/quotes',
      deleteNamedQuote,
      'Deletes the quote of an externalId',
      contract.DeleteQuoteQuerySchema(limits),
      ofId,
    ),
    deletion(
      'deleteQuote',
      '/sources/{id}/quotes/{quoteId}',
      deleteQuote,
      'Deletes the quote of an id',
      byId,
      ofId,
      ofQuote,
    ),
    post('deleteSources', '/sources:delete', 'deleter', 'items', postDeletions, {
      summary: 'Deletes many sources, each on its own',
      description: `Send the name or the id of a source on each line (\`${contract.NDJSON}\`), or an array of at most ${IMPORT_ITEMS.value}. The answer has a result for each item, in their order, and then a summary.`,
      parameters: queryParameters(byId, examples),
      body: content.referencesContent(contract.SourceReferenceSchema(limits), IMPORT_ITEMS.value),
      answers: { 200: ['The results of all items, as the items were sent.', content.DELETIONS] },
    }),
  ]
}

const OPEN_OPERATION = {
  body: content.OPERATION_REQUEST,
  answers: {
    202: ['It is open. `Location` has its progress.', json(contract.OperationSchema), ['Location']],
  },
  problems: ['operations_full'],
} as const satisfies Partial<Route>

const IDS_OR_FILTER =
  'Give either `ids`, at most 1,000, or `filter`; an empty filter means all failed jobs.'

const LANE = pathParameter('lane', { enum: LANES, examples: ['bulk'] })
const OPERATE_LANE = {
  answers: {
    200: ['It is done, and listed among the operations.', json(contract.OperationSchema)],
  },
} as const satisfies Partial<Route>

const OPERATOR_ROUTES: readonly Route[] = [
  get(
    'find',
    '/admin/find',
    'operator',
    'entries',
    show((view, context) =>
      view.find(parseQuery(context, contract.parseFindQuery), context.signal),
    ),
    {
      summary: 'Looks up jobs, and what is stored, of all tenants',
      description: `At most ${contract.HITS_SHOWN} hits. One look-up of a replica at a time examines the queue; others wait.`,
      parameters: queryParameters(contract.FindQuerySchema, content.FIND_EXAMPLES),
      answers: { 200: ['The hits.', json(contract.FindAnswerSchema)] },
      problems: ['stopping'],
    },
  ),
  get(
    'getOverview',
    '/admin/overview',
    'operator',
    'entries',
    show((view) => view.readStatus()),
    {
      summary: 'Returns the state of the queue, the processes and Redis, and what happened lately',
      description:
        'From heartbeats, which each process writes every second: it needs no Prometheus.',
      answers: { 200: ['The state.', json(contract.StatusSchema)] },
    },
  ),
  get(
    'listRecentJobs',
    '/admin/recent',
    'operator',
    'entries',
    show((view, context) => view.listRecent(parseQuery(context, contract.parseRecentJobsQuery))),
    {
      summary: 'Lists the jobs that completed last',
      description:
        'Without `after` the newest ones, with it those that completed since; oldest first.',
      parameters: queryParameters(contract.RecentJobsQuerySchema, { after: '1714555831000-0' }),
      answers: { 200: ['The jobs.', json(contract.RecentJobsSchema)] },
    },
  ),
  get(
    'listFailedJobs',
    '/admin/jobs',
    'operator',
    'entries',
    show((view, context) => view.listFailed(parseQuery(context, contract.parseFailedJobQuery))),
    {
      summary: 'Lists failed jobs, newest first',
      description:
        'Those that meet all parameters. Only a page without `next` is the last, however few jobs it has.',
      parameters: queryParameters(contract.FailedJobQuerySchema, content.FAILED_JOB_EXAMPLES),
      answers: { 200: ['A page of failed jobs.', json(contract.FailedJobPageSchema)] },
    },
  ),
  get(
    'groupFailedJobs',
    '/admin/job-groups',
    'operator',
    'entries',
    show((view, context) => view.groupFailed(parseQuery(context, contract.parseFailedJobFilter))),
    {
      summary: 'Groups failed jobs by their reason',
      description: `Those that meet all given parameters, the group with the most threads first; at most ${contract.GROUPS_LISTED} groups. \`id\` of a group selects its jobs for a retry.`,
      parameters: queryParameters(contract.FailedJobFilterSchema, content.FAILED_JOB_EXAMPLES),
      answers: { 200: ['The groups.', json(contract.FailedJobGroupsSchema)] },
    },
  ),
  get('getFailedJob', '/admin/jobs/{id}', 'operator', 'payload', getFailedJob, {
    summary: 'Shows a failed job',
    description:
      'With the stack of each of the last five failed attempts, and the job as it was enqueued.',
    parameters: [idOf('the job')],
    answers: { 200: ['The failed job.', json(contract.FailedJobSchema)] },
    problems: ['job_unknown'],
  }),
  post('retryFailedJobs', '/admin/jobs:retry', 'operator', 'entries', openOperation('retry'), {
    ...OPEN_OPERATION,
    summary: 'Runs failed jobs again',
    description: `Each with a full set of attempts, in the background. ${IDS_OR_FILTER}`,
  }),
  post(
    'discardFailedJobs',
    '/admin/jobs:discard',
    'operator',
    'entries',
    openOperation('discard'),
    {
      ...OPEN_OPERATION,
      summary: 'Removes failed jobs for good',
      description: `Their requests are lost. The work is done in the background. ${IDS_OR_FILTER}`,
    },
  ),
  post('pauseLane', '/admin/lanes/{lane}:pause', 'operator', 'entries', operateLane('pause'), {
    ...OPERATE_LANE,
    parameters: [
      LANE,
      ...queryParameters(contract.PauseQuerySchema, {
        why: 'MongoDB is being upgraded',
        seconds: 1_800,
      }),
    ],
    summary: 'Pauses a lane',
    description:
      'Workers finish the jobs that they have, and fetch no more of this lane. It still accepts jobs. If the lane is paused, `pause` of the answer says who paused it first, and has the reason of this request, too; the lane then runs again when all of its pauses have ended.',
  }),
  post('resumeLane', '/admin/lanes/{lane}:resume', 'operator', 'entries', operateLane('resume'), {
    ...OPERATE_LANE,
    parameters: [
      LANE,
      ...queryParameters(contract.ResumeQuerySchema, { why: 'MongoDB was upgraded' }),
    ],
    summary: 'Resumes a lane',
    description: 'Workers fetch its jobs again.',
  }),
  get(
    'listOperations',
    '/admin/operations',
    'operator',
    'entries',
    show(async (view) => ({ operations: await view.listOperations() })),
    {
      summary: 'Lists operations, newest first',
      description: `Who retried or discarded which failed jobs, paused or resumed a lane, or deleted threads: the newest ${contract.OPERATIONS_LISTED}, and all that are open.`,
      answers: { 200: ['The operations.', json(contract.OperationListSchema)] },
    },
  ),
  get('getOperation', '/admin/operations/{id}', 'operator', 'entries', getOperation, {
    summary: 'The progress of an operation',
    description: 'A completed operation can be read for a week.',
    parameters: [idOf('the operation')],
    answers: { 200: ['The progress so far.', json(contract.OperationSchema)] },
    problems: ['operation_unknown'],
  }),
]

const getLimits: Route['handler'] = ({ settings, keyring }) => {
  const bounds = limitsAnswer(settings)
  return async ({ request }) => {
    const { 'x-api-key': key } = request.headers
    const check = typeof key === 'string' ? await keyring.find(key) : undefined
    const isImporter = check?.outcome === 'known' && check.role === 'importer'
    return { status: 200, body: { ...bounds, ...(isImporter && { tenant: check.tenant }) } }
  }
}

// A 503 has the same media type as a 200, because it does not report a problem of the request.
const getReadiness: Route['handler'] =
  ({ readiness }) =>
  async () => {
    const body = await readiness()
    const headers = {
      'content-type': 'application/json',
      ...(!body.ready && { 'retry-after': '1' }),
    }
    return { status: body.ready ? 200 : 503, body, headers }
  }

const fileContent = (...mediaTypes: readonly string[]): Content =>
  Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema: { type: 'string' } }]))
const ASSET = fileContent(...Array.from(ASSETS.values(), ({ mediaType }) => mediaType))

const READINESS = json(contract.ReadinessSchema)
const COMPRESSED = ['Content-Encoding', 'Vary'] as const
const FILE_HEADERS = [...COMPRESSED, 'Content-Security-Policy', 'X-Content-Type-Options'] as const
const PAGE: Route['answers'] = {
  200: ['The page.', fileContent('text/html; charset=utf-8'), FILE_HEADERS],
}

const TO_DOCS = {
  summary: 'Leads to the page',
  answers: {
    302: ['The path of the page.', fileContent('text/plain; charset=utf-8'), ['Location']],
  },
} as const satisfies Described

const OPEN_ROUTES: readonly Route[] = [
  get('getLimits', '/limits', 'open', 'fixed', getLimits, {
    summary: 'Every bound that a request can meet',
    answers: { 200: ['The limits in force.', json(contract.LimitsSchema)] },
  }),
  get(
    'getLiveness',
    '/livez',
    'open',
    'fixed',
    () => async () => ({ status: 200, body: { alive: true } }),
    {
      summary: 'Whether the process is alive',
      answers: { 200: ['It is.', json(contract.LivenessSchema)] },
    },
  ),
  get('getReadiness', '/readyz', 'open', 'fixed', getReadiness, {
    summary: 'Whether the process can accept requests',
    answers: { 200: ['It can.', READINESS], 503: ['It can not.', READINESS, ['Retry-After']] },
  }),
  get('getDescription', '/openapi.json', 'open', 'fixed', getDescription(describeApi), {
    summary: 'This description',
    answers: { 200: ['The description of the API.', json({ type: 'object' }), COMPRESSED] },
  }),
  get('getRoot', '/', 'open', 'fixed', () => redirectTo('docs'), TO_DOCS),
  get('getDocsFolder', '/docs/', 'open', 'fixed', () => redirectTo('../docs'), TO_DOCS),
  get('getDocs', '/docs', 'open', 'fixed', getDocs, {
    summary: 'A page to read and try the API',
    answers: PAGE,
  }),
  get('getProblems', '/docs/problems', 'open', 'fixed', getProblemsPage, {
    summary: 'A page that explains every problem',
    answers: PAGE,
  }),
  get('getAsset', '/docs/assets/{name}', 'open', 'fixed', getAsset, {
    summary: 'A file of these pages',
    parameters: [pathParameter('name', { examples: ['page.css'] })],
    answers: { 200: ['The file.', ASSET, FILE_HEADERS] },
  }),
]

/** Builds the OpenAPI document for these limits. */
export function describeApi(limits: contract.Limits) {
  return describeRoutes(apiRoutes(limits))
}
