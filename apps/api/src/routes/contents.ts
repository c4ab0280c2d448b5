// The bodies that have an example: those of requests, and the answers to posts. A test checks the examples.
import * as contract from '@sluice/contract'
import { type Content, EXAMPLE_ID, json, lines } from './route.ts'

const SOURCE = { service: 'slack', externalId: 'C024BE91L/1714555800.000100', title: 'Which keyboard do you use?' }
const QUOTE = { externalId: '1714555860.000200', text: 'A split one, for my wrists.', speaker: 'ada' }
const SOURCE_ID = 'HIMta5gbmrzJqkboXM5_NbWI'
const QUOTE_ID = `${SOURCE_ID}WOetD1_c02sJAlmF6xx7mVQj`

/** Examples of the parameters of queries and paths, by name. */
const { service, externalId } = SOURCE
export const SOURCE_EXAMPLES = { service, externalId, limit: 20 }
export const PAGE_EXAMPLES = { limit: 20, after: `~1714555861000200.000000~${QUOTE_ID}` }
export const FAILED_JOB_EXAMPLES = {
  ...SOURCE_EXAMPLES,
  tenant: 'acme',
  reason: 'validation',
  reasonGroup: 'Document failed validation',
  since: '2024-05-01T00:00:00Z',
  until: '2024-05-02T00:00:00Z',
  after: `1714555831000.${EXAMPLE_ID}`,
}
export const FIND_EXAMPLES = { q: externalId, tenant: 'acme', service, reason: 'validation' }
export const SOURCE_ID_SCHEMA = { examples: [SOURCE_ID] }

const thread = {
  ...SOURCE,
  channelName: 'keyboards',
  createdAt: '2024-05-01T09:30:00Z',
  quotes: [
    { ...QUOTE, upVotes: 4, downVotes: 1 },
    { externalId: '1714555890.000300', text: 'Which layout?', speaker: 'grace', replyingTo: QUOTE.externalId },
  ],
}

/** A thread as it is posted. Its schema depends on the limits. */
export const threadContent = (schema: object): Content => json(schema, thread, 'A thread')

/** The threads of an import, as lines or as an array. */
export const threadsContent = (schema: object, maxItems: number): Content => ({
  ...lines(schema, [thread, { ...thread, externalId: 'C024BE91L/1714555900.000300' }], 'Two threads'),
  ...json({ type: 'array', items: schema, minItems: 1, maxItems }, [thread], 'An array of one thread'),
})

export const lookupContent = (schema: object): Content =>
  json(schema, { service, externalIds: [externalId, 'unknown'] }, 'Two names')

export const STORED = json(contract.ThreadAnswerSchema, {
  message: contract.MESSAGE,
  source: {
    id: SOURCE_ID,
    ...SOURCE,
    description: null,
    wordCount: 6,
    status: contract.STORED_STATUS,
    createdAt: '2024-05-01T09:30:00.000Z',
    outcome: 'created',
  },
  quotes: [{ id: QUOTE_ID, ...QUOTE, outcome: 'created' }],
})

export const ACCEPTED = json(contract.AcceptedAnswerSchema, {
  message: contract.MESSAGE,
  source: { ...SOURCE, description: null },
  quotes: [QUOTE],
})

const quotes = { created: 1, updated: 0, unchanged: 0 }
const item = { index: 0, externalId, status: 200, outcome: 'created', id: SOURCE_ID, wordCount: 6, quotes }
const summary = { received: 1, created: 1, updated: 0, unchanged: 0, failed: 0 }
export const IMPORT = {
  ...lines(contract.ImportLineSchema, [item, { summary }], 'The result of an item, and the summary'),
  ...json(contract.ImportAnswerSchema, { results: [item], summary }),
}

/** Only the OpenAPI document has this rule: `parseOperationRequest` checks it itself, for a better message. */
const ONE_FIELD = { minProperties: 1, maxProperties: 1 }
export const OPERATION_REQUEST = json(
  { ...contract.OperationRequestSchema, ...ONE_FIELD },
  { filter: { tenant: 'acme', reason: 'validation' } },
  'The failed jobs of a tenant',
)
