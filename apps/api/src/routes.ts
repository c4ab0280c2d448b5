import type { Limits } from '@sluice/contract'
import { getBatch } from './batch/get-batch.ts'
import { type PostBatchParts, postBatch } from './batch/post-batch.ts'
import type { Handle } from './call.ts'
import { getJob } from './get-job.ts'
import { getLimits } from './get-limits.ts'
import { postSource } from './post-source.ts'

/** One thing that the API can be asked. */
export interface Route {
  method: 'get' | 'post'
  path: string
  /** Anybody may ask, without a key. */
  open: boolean
  handle: Handle
}

export interface RouteParts extends PostBatchParts {
  limits: Limits
  isReady: () => boolean
}

/** Everything that the API can be asked. */
export function routes(parts: RouteParts): Route[] {
  return [
    { method: 'post', path: '/sources', open: false, handle: postSource(parts) },
    // Express takes a bare colon for the beginning of a parameter.
    { method: 'post', path: '/sources\\:batch', open: false, handle: postBatch(parts) },
    { method: 'get', path: '/batches/:id', open: false, handle: getBatch(parts.batches) },
    { method: 'get', path: '/jobs/:id', open: false, handle: getJob(parts) },
    { method: 'get', path: '/limits', open: true, handle: getLimits(parts.limits, parts) },
    { method: 'get', path: '/livez', open: true, handle: async () => ({ status: 200, body: { alive: true } }) },
    { method: 'get', path: '/readyz', open: true, handle: readiness(parts.isReady) },
  ]
}

function readiness(isReady: () => boolean): Handle {
  return async () => (isReady() ? { status: 200, body: { ready: true } } : { status: 503, body: { ready: false } })
}
