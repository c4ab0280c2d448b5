// The routes of the API, as its description has them.
import { describeApi } from '@sluice/api/openapi'
import { DEFAULT_LIMITS } from '@sluice/contract'

/** One route. */
export interface ApiRoute {
  /** In capitals. */
  method: string
  /** With `:id` where an id belongs. */
  path: string
  /** Whose key it needs, or `open`. */
  access: string
}

/** All routes of the API. */
export function apiRoutes(): ApiRoute[] {
  return Object.entries(describeApi(DEFAULT_LIMITS).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { security }]) => ({
      method: method.toUpperCase(),
      path: path.replaceAll(/\{(\w+)\}/g, ':$1'),
      access: security[0]?.key[0] ?? 'open',
    })),
  )
}
