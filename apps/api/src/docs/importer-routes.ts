// Describes the routes of importers for `/openapi.json`, each by its method and path.
import {
  AcceptedAnswerSchema,
  ImportAnswerSchema,
  ImportLineSchema,
  ImportProgressSchema,
  JobAnswerSchema,
  type Limits,
  NamedSourceQuerySchema,
  NDJSON,
  type ProblemCode,
  SourcePageQuerySchema,
  SourcePageSchema,
  ThreadAnswerSchema,
  ThreadRequestSchema,
} from '@sluice/contract'
import { IMPORT_LIMITS } from '../settings.ts'
import {
  ACCEPTED_EXAMPLE,
  IMPORT_EXAMPLE,
  IMPORT_PROGRESS_EXAMPLE,
  JOB_EXAMPLE,
  LINES_EXAMPLE,
  RESULT_LINES_EXAMPLE,
  SOURCE_PAGE_EXAMPLE,
  STORED_EXAMPLE,
  THREAD_EXAMPLE,
} from './examples.ts'
import {
  CONTENT_ENCODING,
  type Content,
  IDEMPOTENCY_KEY,
  idOf,
  json,
  PREFER,
  PREFER_WAIT,
  QUOTA_HEADERS,
  queryParameters,
  type RouteDescription,
} from './route-description.ts'

/** The problems of any request with a body. */
export const BODY_PROBLEMS: readonly ProblemCode[] = [
  'json_invalid',
  'request_invalid',
  'body_too_large',
  'media_type_unsupported',
  'charset_unsupported',
  'encoding_unsupported',
  'stopping',
]

/** The problems of a request that adds to the queue. */
const POST_PROBLEMS: readonly ProblemCode[] = [
  ...BODY_PROBLEMS,
  'rate_limited',
  'queue_unavailable',
  'queue_full',
  'tenant_share',
  'acceptance_unknown',
]

/** The problems of a request that reads a stored source. */
const READ_PROBLEMS: readonly ProblemCode[] = ['request_invalid', 'source_unknown', 'store_unavailable', 'stopping']

const SORTED =
  'The quotes are sorted by `createdAt` and then `position` if every quote has a date, else by `position`. Only one page without `next` is the last.'

const PAGE_EXAMPLES = { limit: '20', after: SOURCE_PAGE_EXAMPLE.next ?? '' }

/** The routes of importers. */
export function importerRoutes(limits: Limits): Readonly<Record<string, RouteDescription>> {
  const thread = ThreadRequestSchema(limits)
  return {
    'POST /sources': {
      id: 'postSource',
      access: 'importer',
      summary: 'Stores a source with its quotes',
      description:
        'Merges the source into the stored one. By default the answer comes when everything is stored. Posting the same again is safe and answers `unchanged`. Unknown fields are ignored.',
      parameters: [PREFER, IDEMPOTENCY_KEY, CONTENT_ENCODING],
      body: json(thread, THREAD_EXAMPLE, 'A thread'),
      answers: {
        200: {
          description: 'The source and its quotes are stored.',
          headers: ['Preference-Applied', ...QUOTA_HEADERS],
          content: json(ThreadAnswerSchema, STORED_EXAMPLE),
        },
        202: {
          description: 'The request is in the queue, and its caller prefers not to wait.',
          headers: ['Location', 'Preference-Applied', ...QUOTA_HEADERS],
          content: json(AcceptedAnswerSchema, ACCEPTED_EXAMPLE),
        },
      },
      problems: [...POST_PROBLEMS, 'idempotency_key_reused', 'job_failed', 'job_pending'],
    },
    'GET /sources': {
      id: 'findSource',
      access: 'importer',
      summary: 'Shows the source of a name, with a page of its quotes',
      description: SORTED,
      parameters: queryParameters(NamedSourceQuerySchema(limits), {
        service: 'slack',
        externalId: THREAD_EXAMPLE.externalId,
        ...PAGE_EXAMPLES,
      }),
      answers: { 200: { description: 'The source.', content: json(SourcePageSchema, SOURCE_PAGE_EXAMPLE) } },
      problems: READ_PROBLEMS,
    },
    'GET /sources/{id}': {
      id: 'getSource',
      access: 'importer',
      summary: 'Shows the source of an id, with a page of its quotes',
      description: SORTED,
      parameters: [
        {
          name: 'id',
          in: 'path',
          required: true,
          description: 'The id of the source, from an answer to POST.',
          schema: { type: 'string', examples: [SOURCE_PAGE_EXAMPLE.source.id] },
        },
        ...queryParameters(SourcePageQuerySchema, PAGE_EXAMPLES),
      ],
      answers: { 200: { description: 'The source.', content: json(SourcePageSchema, SOURCE_PAGE_EXAMPLE) } },
      problems: READ_PROBLEMS,
    },
    'POST /sources:batch': {
      id: 'postImport',
      access: 'importer',
      summary: 'Stores many sources, each on its own',
      description: `Send a thread on each line (\`${NDJSON}\`), or an array of at most ${IMPORT_LIMITS.importItems.default}. A refused item harms no other. The answer has a result for each item, in their order, and then a summary.`,
      parameters: [PREFER, CONTENT_ENCODING],
      body: {
        ...lines(thread, LINES_EXAMPLE, 'Two threads, one on each line'),
        ...json(
          { type: 'array', items: thread, maxItems: IMPORT_LIMITS.importItems.default },
          [THREAD_EXAMPLE],
          'An array of one thread',
        ),
      },
      answers: {
        200: {
          description: 'The results of all items, as lines or as one object, as the items were sent.',
          headers: QUOTA_HEADERS,
          content: {
            ...lines(ImportLineSchema, RESULT_LINES_EXAMPLE, 'The results of two items, and the summary'),
            ...json(ImportAnswerSchema, IMPORT_EXAMPLE),
          },
        },
        202: {
          description: 'All items are in the queue, and their caller prefers not to wait.',
          headers: ['Location', 'Preference-Applied', ...QUOTA_HEADERS],
          content: json(ImportProgressSchema, IMPORT_PROGRESS_EXAMPLE),
        },
      },
      problems: POST_PROBLEMS,
      problemHeaders: ['Location'],
    },
    'GET /batches/{id}': {
      id: 'getImport',
      access: 'importer',
      summary: 'The progress of an import',
      description: 'Of an import that was answered 202. It can be read until an hour after its last item.',
      parameters: [idOf('the import')],
      answers: {
        200: { description: 'The progress so far.', content: json(ImportProgressSchema, IMPORT_PROGRESS_EXAMPLE) },
      },
      problems: ['import_unknown', 'queue_unavailable'],
    },
    'GET /jobs/{id}': {
      id: 'getJob',
      access: 'importer',
      summary: 'The state of a job',
      description: 'Once the job is done, with the very answer that a waiting caller would have got.',
      parameters: [idOf('the job'), PREFER_WAIT],
      answers: {
        200: {
          description: 'The job. It has a result if it is completed, and a problem if it failed.',
          headers: ['Preference-Applied'],
          content: json(JobAnswerSchema, JOB_EXAMPLE),
        },
      },
      problems: ['job_unknown', 'queue_unavailable'],
    },
  }
}

/** A body in lines, with the schema of each line. */
function lines(itemSchema: object, value: string, summary: string): Content {
  const schema = { type: 'string', contentMediaType: NDJSON, description: 'JSON texts, one on each line.' }
  return { [NDJSON]: { schema, 'x-itemSchema': itemSchema, examples: { lines: { summary, value } } } }
}
