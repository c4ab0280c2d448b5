// The worst request of each route: the one with the largest or most expensive answer. A route
// without one fails a test.
import assert from 'node:assert/strict'
import { createKey } from '@sluice/credentials/keys'
import { sourceIdOf } from '@sluice/store/ids'
import { aThread } from '../support/post-thread.ts'
import type { TestSluice } from '../support/start-sluice.ts'
import { until } from '../support/until.ts'

export interface WorstRequest {
  method?: 'POST' | 'DELETE'
  path: string
  key?: string
  body?: string
  type?: string
}

type Prepared = Awaited<ReturnType<typeof prepareWorst>>
type Window = Readonly<Record<string, (prepared: Prepared) => WorstRequest>>

const UNKNOWN_ID = '0192f0c1-7e57-7abc-8def-0123456789ab'
const JSON_TYPE = 'application/json'

/**
 * The requests by the ids of their routes. Those of a window are sent in turn. Windows of one
 * tenant are not beside each other: while it rests, its requests are no burden.
 */
export const WINDOWS: Readonly<Record<string, Window>> = {
  'of a job of 10 MB': { getJob: ({ paths, keys }) => ({ path: paths.job, key: keys.jobs }) },
  'of sources with long descriptions': {
    lookUpSources: ({ keys }) => {
      const body = JSON.stringify({ service: 'custom', externalIds: NAMES })
      return { method: 'POST', path: '/sources:lookup', key: keys.sources, body, type: JSON_TYPE }
    },
  },
  "of another tenant's job of 10 MB": {
    getJob: ({ paths, keys }) => ({ path: paths.job, key: keys.other }),
  },
  'of pages of a large source': {
    getSource: ({ paths, keys }) => ({ path: `${paths.source}?limit=1000`, key: keys.pages }),
  },
  'of an import with a thousand problems': {
    getImport: ({ paths, keys }) => ({ path: paths.import, key: keys.imports }),
  },
  'of a list of sources with long descriptions': {
    findSource: ({ keys }) => ({ path: '/sources?limit=1000', key: keys.sources }),
  },
  'of the results of faulty lines of 2 bytes': {
    postImport: ({ keys }) => {
      const [body, type] = ['1\n'.repeat(20_000), 'application/x-ndjson']
      return { method: 'POST', path: '/sources:batch', key: keys.imports, body, type }
    },
  },
  'of pages and documents': {
    getDescription: () => ({ path: '/openapi.json' }),
    getDocs: () => ({ path: '/docs' }),
    getProblems: () => ({ path: '/docs/problems' }),
    getAsset: () => ({ path: '/docs/assets/swagger-ui-bundle.js' }),
    getRoot: () => ({ path: '/' }),
    getDocsFolder: () => ({ path: '/docs/' }),
    getLimits: ({ keys }) => ({ path: '/limits', key: keys.jobs }),
    getLiveness: () => ({ path: '/livez' }),
    getReadiness: () => ({ path: '/readyz' }),
  },
  'of a failed job of 10 MB': {
    getFailedJob: ({ paths, keys }) => ({ path: paths.failed, key: keys.operator }),
  },
  "of operators' lists": {
    getOverview: ({ keys }) => ({ path: '/admin/overview', key: keys.operator }),
    find: ({ keys }) => ({ path: `/admin/find?q=${'x'.repeat(500)}`, key: keys.operator }),
    listRecentJobs: ({ keys }) => ({ path: '/admin/recent', key: keys.operator }),
    listFailedJobs: ({ keys }) => ({
      path: '/admin/jobs?limit=100&service=custom',
      key: keys.operator,
    }),
    groupFailedJobs: ({ keys }) => ({
      path: '/admin/job-groups?service=custom',
      key: keys.operator,
    }),
    listOperations: ({ keys }) => ({ path: '/admin/operations', key: keys.operator }),
    getOperation: ({ paths, keys }) => ({ path: paths.operation, key: keys.operator }),
  },
  'of exports of long descriptions': {
    exportSources: ({ keys }) => ({ path: '/sources:export', key: keys.sources }),
  },
  "of operators' acts": {
    retryFailedJobs: ({ keys }) => ({ path: '/admin/jobs:retry', ...actOn(keys.operator) }),
    discardFailedJobs: ({ keys }) => ({ path: '/admin/jobs:discard', ...actOn(keys.operator) }),
    pauseLane: ({ keys }) => ({
      method: 'POST',
      path: `/admin/lanes/bulk:pause?why=${WHY}`,
      key: keys.operator,
    }),
    resumeLane: ({ keys }) => ({
      method: 'POST',
      path: `/admin/lanes/bulk:resume?why=${WHY}`,
      key: keys.operator,
    }),
  },
  'of erasures': {
    erase: ({ keys }) => {
      const body = JSON.stringify({ speaker: 'x'.repeat(2_000), reason: 'x'.repeat(200) })
      return { method: 'POST', path: '/erasures', key: keys.deletes, body, type: JSON_TYPE }
    },
    listErasures: ({ keys }) => ({ path: '/erasures', key: keys.deletes }),
    getErasure: ({ keys }) => ({ path: `/erasures/${UNKNOWN_ID}`, key: keys.deletes }),
    listSuppressions: ({ keys }) => ({ path: '/suppressions?limit=1000', key: keys.deletes }),
    endSuppression: ({ keys }) => ({ ...DELETION, path: '/suppressions/none', key: keys.deletes }),
  },
  'of deletions': {
    deleteSourceByName: ({ keys }) => ({
      ...DELETION,
      path: `/sources?service=custom&externalId=${'x'.repeat(512)}`,
      key: keys.deletes,
    }),
    deleteSource: ({ paths, keys }) => ({ ...DELETION, path: paths.deleted, key: keys.deletes }),
    deleteQuoteByName: ({ paths, keys }) => ({
      ...DELETION,
      path: `${paths.deleted}/quotes?externalId=q1`,
      key: keys.deletes,
    }),
    deleteQuote: ({ paths, keys }) => ({
      ...DELETION,
      path: `${paths.deleted}/quotes/${'x'.repeat(48)}`,
      key: keys.deletes,
    }),
    deleteSources: ({ keys }) => {
      const [body, type] = ['1\n'.repeat(20_000), 'application/x-ndjson']
      return { method: 'POST', path: '/sources:delete', key: keys.deletes, body, type }
    },
  },
  'of posts that repeat 10,000 quotes': {
    postSource: ({ keys }) => ({
      method: 'POST',
      path: '/sources',
      key: keys.other,
      body: MANY,
      type: JSON_TYPE,
    }),
  },
}

const DELETION = { method: 'DELETE' } as const

const WHY = 'é'.repeat(200).replaceAll('é', '%C3%A9')

function actOn(key: string) {
  const body = JSON.stringify({ ids: Array(1_000).fill(UNKNOWN_ID) })
  return { method: 'POST', key, body, type: JSON_TYPE } as const
}

const LONG = '🎹'.repeat(20_000)
const NAMES = Array.from({ length: 150 }, (_, at) => `long-${at}`)
const LARGE = {
  ...aThread({ externalId: 'large' }),
  quotes: Array.from({ length: 10_000 }, (_, at) => ({
    externalId: `q${at}`,
    text: 'é'.repeat(450),
  })),
}
const MANY = JSON.stringify(LARGE)
const PAGES = {
  ...aThread(),
  quotes: Array.from({ length: 15 }, () => ({ text: '🎹'.repeat(50_000) })),
}
/** Five faults in each line. */
const FAULTY = `${JSON.stringify({ externalId: LONG.slice(0, 1_000), url: 1, title: 1, quotes: 1, createdAt: 1 })}\n`

/** Stores what the worst requests read. Returns its paths, and the keys of its tenants. */
export async function prepareWorst({ url, db }: TestSluice) {
  const keyOf = async (tenant: string) => (await createKey(db, { tenant, name: tenant })).key
  const keys = {
    jobs: await keyOf('jobs'),
    pages: await keyOf('pages'),
    sources: await keyOf('sources'),
    imports: await keyOf('imports'),
    other: await keyOf('other'),
    deletes: (await createKey(db, { tenant: 'deletes', name: 'deletes', deletes: true })).key,
    operator: (await createKey(db, { role: 'operator', name: 'on call' })).key,
  }
  async function post(
    path: string,
    key: string,
    body: string,
    headers: Record<string, string> = {},
  ) {
    const sent = { 'content-type': JSON_TYPE, ...headers, 'x-api-key': key }
    const answer = await fetch(`${url}${path}`, { method: 'POST', headers: sent, body })
    assert.ok(answer.ok, `${path}: ${answer.status}`)
    return { text: await answer.text(), location: answer.headers.get('location') ?? '' }
  }
  const later = { prefer: 'respond-async' }
  async function job(key: string, state: string): Promise<string> {
    const { location } = await post('/sources', key, MANY, later)
    await until(`a job is ${state}`, async () => {
      const answer = await fetch(`${url}${location}`, {
        headers: { 'x-api-key': key, prefer: 'wait=5' },
      })
      return (await answer.text()).includes(`"${state}"`)
    })
    return location
  }
  const ndjson = (items: readonly object[]) =>
    items.map((item) => `${JSON.stringify(item)}\n`).join('')
  const long = NAMES.map((externalId) => ({
    ...aThread({ externalId, quotes: 0 }),
    description: LONG,
  }))
  // Sluice never writes such a document, so every job for it fails.
  const broken = sourceIdOf('imports', { service: 'custom', externalId: LARGE.externalId })
  await db.collection<{ _id: string }>('sources').insertOne({ _id: broken })
  const lines = { 'content-type': 'application/x-ndjson' }
  const [completed, failed, pages, faulty, operation] = await Promise.all([
    job(keys.jobs, 'completed'),
    job(keys.imports, 'failed'),
    post('/sources', keys.pages, JSON.stringify(PAGES)),
    post('/sources:batch', keys.imports, FAULTY.repeat(2_000), { ...lines, ...later }),
    post('/admin/jobs:retry', keys.operator, JSON.stringify({ ids: [UNKNOWN_ID] })),
    post('/sources:batch', keys.sources, ndjson(long), lines),
    post('/sources', keys.other, MANY),
    post('/sources', keys.deletes, MANY),
  ])
  const paths = {
    job: completed,
    source: `/sources/${JSON.parse(pages.text).source.id}`,
    failed: failed.replace('/jobs/', '/admin/jobs/'),
    import: faulty.location,
    operation: operation.location,
    deleted: `/sources/${sourceIdOf('deletes', { service: 'custom', externalId: LARGE.externalId })}`,
  }
  return { keys, paths }
}
