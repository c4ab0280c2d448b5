// The example bodies of `/openapi.json`. Their types are those of the answers, so an example can't miss a field.
import {
  type AcceptedAnswer,
  createProblem,
  type FailedJob,
  type FailedJobPage,
  type ImportAnswer,
  type ImportProgressAnswer,
  type JobAnswer,
  MESSAGE,
  type Operation,
  PROBLEMS,
  type ProblemCode,
  type SourcePage,
  STORED_STATUS,
  type ThreadAnswer,
} from '@sluice/contract'
import { EXAMPLE_ID } from './route-description.ts'

const SOURCE = {
  service: 'slack',
  externalId: 'C024BE91L/1714555800.000100',
  title: 'Which keyboard do you use?',
} as const
const QUOTE = { externalId: '1714555860.000200', text: 'A split one, for my wrists.', speaker: 'ada' }
const SOURCE_ID = 'HIMta5gbmrzJqkboXM5_NbWI'
const QUOTE_ID = `${SOURCE_ID}WOetD1_c02sJAlmF6xx7mVQj`
const MOMENT = '2024-05-01T09:30:00.000Z'

export const THREAD_EXAMPLE = { ...SOURCE, quotes: [QUOTE] }

/** Two lines of an import: threads as they are sent. */
export const LINES_EXAMPLE = [THREAD_EXAMPLE, { ...THREAD_EXAMPLE, externalId: 'C024BE91L/1714555900.000300' }]
  .map((thread) => `${JSON.stringify(thread)}\n`)
  .join('')

export const STORED_EXAMPLE: ThreadAnswer = {
  message: MESSAGE,
  source: {
    id: SOURCE_ID,
    ...SOURCE,
    description: null,
    wordCount: 6,
    status: STORED_STATUS,
    createdAt: MOMENT,
    outcome: 'created',
  },
  quotes: [{ id: QUOTE_ID, ...QUOTE, outcome: 'created' }],
}

export const ACCEPTED_EXAMPLE: AcceptedAnswer = {
  message: MESSAGE,
  source: { ...SOURCE, description: null },
  quotes: [QUOTE],
}

const { outcome: _ofSource, ...READ_SOURCE } = STORED_EXAMPLE.source

export const SOURCE_PAGE_EXAMPLE: SourcePage = {
  source: READ_SOURCE,
  quotes: [{ id: QUOTE_ID, ...QUOTE, position: '1714555861000200.000000' }],
  next: `~1714555861000200.000000~${QUOTE_ID}`,
}

export const JOB_EXAMPLE: JobAnswer = {
  id: EXAMPLE_ID,
  state: 'completed',
  changedAt: MOMENT,
  attempts: 1,
  result: STORED_EXAMPLE,
}

/** What a problem looks like: its title says the same each time, its detail does not. */
export function problemExample(code: ProblemCode) {
  const detail = PROBLEMS[code].meaning.replaceAll('`', '')
  const jobId =
    code === 'job_failed' || code === 'job_pending' || code === 'acceptance_unknown' ? EXAMPLE_ID : undefined
  const isFault = PROBLEMS[code].status === 400
  return createProblem(code, {
    detail,
    instance: '/sources',
    requestId: 'import-7/line:12',
    ...(isFault && { errors: [{ pointer: '', code: 'not_json' as const, message: detail }], total: 1 }),
    ...(jobId !== undefined && { jobId }),
  })
}

const SUMMARY = { received: 2, created: 1, updated: 0, unchanged: 0, failed: 1 }

export const IMPORT_EXAMPLE: ImportAnswer = {
  results: [
    {
      index: 0,
      externalId: SOURCE.externalId,
      status: 200,
      outcome: 'created',
      id: SOURCE_ID,
      wordCount: 6,
      quotes: { created: 1, updated: 0, unchanged: 0 },
    },
    { index: 1, status: 400, problem: problemExample('json_invalid') },
  ],
  summary: SUMMARY,
}

/** The same answer in lines. */
export const RESULT_LINES_EXAMPLE = [...IMPORT_EXAMPLE.results, { summary: SUMMARY }]
  .map((line) => `${JSON.stringify(line)}\n`)
  .join('')

export const IMPORT_PROGRESS_EXAMPLE: ImportProgressAnswer = {
  id: EXAMPLE_ID,
  state: 'completed',
  summary: SUMMARY,
  problems: [{ index: 1, problem: problemExample('json_invalid') }],
}

const FAILED = {
  id: EXAMPLE_ID,
  tenant: 'acme',
  name: `slack/${SOURCE.externalId}`,
  threads: 1,
  lane: 'interactive',
  enqueuedAt: MOMENT,
  failedAt: '2024-05-01T09:30:31.000Z',
  attempts: 5,
  reason: 'Document failed validation',
}

export const FAILED_JOBS_EXAMPLE: FailedJobPage = { jobs: [FAILED], next: `1714555831000.${EXAMPLE_ID}` }

export const FAILED_JOB_EXAMPLE: FailedJob = {
  ...FAILED,
  stack: ['MongoServerError: Document failed validation\n    at storeBatch (store-batch.ts:80:11)'],
  payload: { tenant: 'acme', threads: [{ source: SOURCE, quotes: [QUOTE] }] },
}

export const OPERATION_EXAMPLE: Operation = {
  id: EXAMPLE_ID,
  kind: 'retry',
  state: 'active',
  createdAt: MOMENT,
  changedAt: MOMENT,
  total: 240,
  examined: 100,
  done: 97,
}
