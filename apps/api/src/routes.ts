// The route table of the API, with the handlers that need no more than a line or two.
import { LIMIT_DETAILS, type LimitName, type LimitsAnswer } from '@sluice/contract'
import { getFailedJob, getOperation, listFailedJobs, openOperation } from './admin/admin-jobs.ts'
import type { ApiDeps, ApiLimits } from './api-deps.ts'
import type { Route } from './app.ts'
import { describeApi } from './docs/describe-api.ts'
import { getAsset, getDocs, getProblemsPage } from './docs/pages.ts'
import { getImport } from './imports/async-import.ts'
import { postImport } from './imports/post-import.ts'
import type { Handler } from './request/request-context.ts'
import { apiSettings, IMPORT_LIMITS } from './settings.ts'
import { getJob } from './sources/get-job.ts'
import { getNamedSource, getSource } from './sources/get-source.ts'
import { postSource } from './sources/post-source.ts'

/** Everything that the API can be asked. */
export function createRoutes(deps: Omit<ApiDeps, 'keyring' | 'log'>): Route[] {
  return [
    { method: 'post', path: '/sources', access: 'importer', takesIdempotencyKey: true, handler: postSource(deps) },
    { method: 'get', path: '/sources', access: 'importer', handler: getNamedSource(deps) },
    { method: 'get', path: '/sources/:id', access: 'importer', handler: getSource(deps) },
    // A bare colon would begin a parameter.
    { method: 'post', path: '/sources\\:batch', access: 'importer', handler: postImport(deps) },
    { method: 'get', path: '/batches/:id', access: 'importer', handler: getImport(deps.imports) },
    { method: 'get', path: '/jobs/:id', access: 'importer', handler: getJob(deps) },
    { method: 'get', path: '/admin/jobs', access: 'operator', handler: listFailedJobs(deps.failedJobs) },
    { method: 'get', path: '/admin/jobs/:id', access: 'operator', handler: getFailedJob(deps.failedJobs) },
    { method: 'post', path: '/admin/jobs\\:retry', access: 'operator', handler: openOperation(deps, 'retry') },
    { method: 'post', path: '/admin/jobs\\:discard', access: 'operator', handler: openOperation(deps, 'discard') },
    { method: 'get', path: '/admin/operations/:id', access: 'operator', handler: getOperation(deps.operations) },
    { method: 'get', path: '/openapi.json', access: 'open', handler: getDescription(deps.limits) },
    { method: 'get', path: '/docs', access: 'open', handler: getDocs() },
    { method: 'get', path: '/docs/problems', access: 'open', handler: getProblemsPage() },
    { method: 'get', path: '/docs/assets/:name', access: 'open', handler: getAsset() },
    { method: 'get', path: '/limits', access: 'open', handler: getLimits(deps.limits) },
    { method: 'get', path: '/livez', access: 'open', handler: async () => ({ status: 200, body: { alive: true } }) },
    { method: 'get', path: '/readyz', access: 'open', handler: getReadiness(deps.readiness) },
  ]
}

const JSON_BODY = { 'content-type': 'application/json' }
const NOT_READY = { ...JSON_BODY, 'retry-after': '1' }

function getReadiness(readiness: ApiDeps['readiness']): Handler {
  return async () => {
    const state = await readiness()
    // It is no problem of the request, so a 503 has the same media type as a 200.
    return { status: state.ready ? 200 : 503, body: state, headers: state.ready ? JSON_BODY : NOT_READY }
  }
}

/** The description of the API, built when it is first asked for. */
function getDescription(limits: ApiLimits): Handler {
  let json: string | undefined
  return async () => {
    json ??= JSON.stringify(describeApi(limits))
    return { status: 200, json }
  }
}

/** The settings that bound the queue, and the keys without limits of their own. */
type Described = 'quotesPerSecond' | 'burstQuotes' | 'queueThreads' | 'queueBytes' | 'waitingSeconds' | 'tenantShare'

/** Every bound that a request can meet, with its unit. */
function getLimits(limits: ApiLimits): Handler {
  const names = Object.keys(LIMIT_DETAILS) as LimitName[]
  const { importBytes, importItems } = IMPORT_LIMITS
  const ofSetting = (name: Described, unit: string) =>
    describeLimit(limits[name], { unit, description: apiSettings[name].description })
  const body: LimitsAnswer = {
    limits: {
      ...Object.fromEntries(names.map((name) => [name, describeLimit(limits[name], LIMIT_DETAILS[name])])),
      importBytes: describeLimit(limits.importBytes, importBytes),
      importItems: describeLimit(importItems.default, importItems),
    },
    quota: {
      quotesPerSecond: ofSetting('quotesPerSecond', 'quotes per second'),
      burstQuotes: ofSetting('burstQuotes', 'quotes'),
    },
    queue: {
      queueThreads: ofSetting('queueThreads', 'threads'),
      queueBytes: ofSetting('queueBytes', 'bytes'),
      waitingSeconds: ofSetting('waitingSeconds', 'seconds'),
      tenantShare: ofSetting('tenantShare', 'part'),
    },
    waitSeconds: {
      value: limits.waitSeconds,
      unit: 'seconds',
      description: 'The longest that a caller waits for its answer.',
    },
  }
  return async () => ({ status: 200, body })
}

function describeLimit(value: number, { unit, description }: { unit: string; description: string }) {
  return { value, unit, description }
}
