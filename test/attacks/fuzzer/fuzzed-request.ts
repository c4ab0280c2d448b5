// Derives requests from the API's routes: right ones, and ones with another method, path, key,
// header or body.
import { FailedJobQuerySchema } from '@sluice/contract'
import fc from 'fast-check'
import { headerText } from '../support/hostile-values.ts'
import { type ApiRoute, apiRoutes } from './api-routes.ts'
import {
  type FuzzedBody,
  importBody,
  nameQuery,
  operationBody,
  referencesBody,
  schemaOf,
  strayBody,
  threadBody,
} from './fuzzed-body.ts'
import { nearSchema, seldom } from './near-schema.ts'

/** One request as data, so that a seed and a number name it. */
export interface FuzzedRequest {
  route: ApiRoute
  method: string
  /** The path with `:id` where an id belongs. */
  path: string
  /** The query, with its question mark, or ''. */
  query: string
  /** A text in place of an id, or which of the ids that earlier answers gave. */
  id: string | number
  /** The role that the route needs, another tenant's, the other role, a wrong key, or none. */
  key: 'right' | 'other' | 'role' | 'wrong' | 'none'
  headers: Record<string, string>
  body: FuzzedBody
}

const METHODS = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'QUERY',
]
const HOSTILE_IDS = [
  '1',
  '01900000-0000-7000-8000-000000000000',
  '__proto__',
  'constructor',
  'meta',
  'failed',
  'events',
  '*',
  '%00',
  '%ff',
  '%',
  '..%2f..%2fetc',
  '..',
  '{}:stamp',
  "';--",
  '<img%20src=x>',
  'x'.repeat(3_000),
]
const PREFERENCES = [
  'respond-async',
  'respond-async, handling=strict',
  'handling=strict',
  'wait=0',
  'wait=1',
  'wait=-1',
  'wait=99999999999999999999',
  'respond-async; x="a,b", wait="0"',
  '"',
]
const MEDIA_TYPES = [
  'text/plain',
  'application/json; charset=utf-8',
  'application/json; charset=latin1',
  ';',
  'multipart/form-data',
]
const NAMES = [
  'x-request-id',
  'accept',
  'content-type',
  'traceparent',
  'x-forwarded-for',
  'origin',
  'range',
  'cookie',
  'host',
]

const id = fc.oneof(
  { weight: 2, arbitrary: fc.nat() },
  { weight: 1, arbitrary: fc.constantFrom(...HOSTILE_IDS) },
)
const key = fc.oneof(
  { weight: 20, arbitrary: fc.constant('right' as const) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      'other' as const,
      'role' as const,
      'wrong' as const,
      'none' as const,
    ),
  },
)
const changePath: fc.Arbitrary<(path: string) => string> = fc.oneof(
  { weight: 20, arbitrary: fc.constant((path: string) => path) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('?a=1', '?__proto__=1&a[b]=c', '/', '//', '/..', '%2f', '#a')
      .map((end) => (path: string) => path + end),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      (path: string) => path.toUpperCase(),
      (path: string) => `/${path}`,
      () => '/',
      () => '/nothing',
    ),
  },
)
const headers = fc
  .tuple(
    seldom(fc.constantFrom(...PREFERENCES), 2),
    seldom(fc.constantFrom(...MEDIA_TYPES), 15),
    seldom(fc.tuple(fc.constantFrom(...NAMES), headerText), 6),
  )
  .map(([prefer, mediaType, other]) => ({
    ...(prefer !== null && { prefer }),
    ...(mediaType !== null && { 'content-type': mediaType }),
    ...(other !== null && { [other[0]]: other[1] }),
  }))

/** Where importers write gets most of the requests. */
const byRoute = apiRoutes().map((route) => ({
  weight: weightOf(route),
  arbitrary: fc.constant(route),
}))

function weightOf({ method, access }: ApiRoute): number {
  return method === 'POST' && access === 'importer' ? 12 : 3
}

const fuzzedRequest: fc.Arbitrary<FuzzedRequest> = fc.oneof(...byRoute).chain((route) =>
  fc
    .record({
      method: fc.oneof(
        { weight: 20, arbitrary: fc.constant<string>(route.method) },
        { weight: 1, arbitrary: fc.constantFrom(...METHODS) },
      ),
      change: changePath,
      query: queryOf(route),
      id,
      key,
      headers,
      body: bodyOf(route),
    })
    .map(({ change, ...request }) => ({ route, path: change(route.path), ...request })),
)

function queryOf({ method, path }: ApiRoute): fc.Arbitrary<string> {
  if (path === '/admin/jobs') return filterQuery
  return method === 'DELETE' && path === '/sources' ? nameQuery : fc.constant('')
}

/** A query near the schema of filters, most of its fields left out. */
const filterQuery = fc
  .tuple(nearSchema(schemaOf(FailedJobQuerySchema)), fc.nat())
  .map(([query, chosen]) => {
    const fields = Object.entries(Object(query)).map(([name, value]): [string, string] => [
      name,
      String(value).slice(0, 3_000).toWellFormed(),
    ])
    const kept = fields.filter((_, at) => (chosen >> at) % 4 === 0)
    return `?${new URLSearchParams(kept)}`
  })

function bodyOf({ method, path }: ApiRoute): fc.Arbitrary<FuzzedBody> {
  if (method !== 'POST') return strayBody
  if (path.startsWith('/admin')) return operationBody
  if (path.includes(':delete')) return referencesBody
  return path.includes('batch') ? importBody : threadBody
}

/** The same requests for the same seed. */
export function fuzzedRequests(seed: number, count: number): FuzzedRequest[] {
  return fc.sample(fuzzedRequest, { seed, numRuns: count })
}
