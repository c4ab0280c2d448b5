import type { Limits } from '@sluice/contract'
import type { Handle } from './call.ts'
import { getJob } from './get-job.ts'
import { getLimits } from './get-limits.ts'
import { type PostSourceParts, postSource } from './post-source.ts'

/** One thing that the API can be asked. */
export interface Route {
  method: 'get' | 'post'
  path: string
  /** Anybody may ask, without a key. */
  open: boolean
  handle: Handle
}

export interface RouteParts extends PostSourceParts {
  limits: Limits
  isReady: () => boolean
}

/** Everything that the API can be asked. */
export function routes(parts: RouteParts): Route[] {
  return [
    { method: 'post', path: '/sources', open: false, handle: postSource(parts) },
    { method: 'get', path: '/jobs/:id', open: false, handle: getJob(parts) },
    { method: 'get', path: '/limits', open: true, handle: getLimits(parts.limits, parts.waitSeconds) },
    { method: 'get', path: '/livez', open: true, handle: async () => ({ status: 200, body: { alive: true } }) },
    { method: 'get', path: '/readyz', open: true, handle: readiness(parts.isReady) },
  ]
}

function readiness(isReady: () => boolean): Handle {
  return async () => (isReady() ? { status: 200, body: { ready: true } } : { status: 503, body: { ready: false } })
}
