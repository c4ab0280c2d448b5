// Reads the API's routes from its source, so that a new route is fuzzed as soon as it exists.
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** One route, with its path as Express takes it. */
export interface ApiRoute {
  method: 'GET' | 'POST'
  path: string
  /** Whose key it needs, if any. */
  access: string
}

const source = fileURLToPath(new URL('../../../apps/api/src/', import.meta.url))
const ROUTE = /method: '(get|post)',\s*path: '([^']+)',\s*access: '(\w+)'/g

/** All routes of the API. */
export function apiRoutes(): ApiRoute[] {
  const files = globSync('**/*.ts', { cwd: source }).filter((name) => !name.endsWith('.test.ts'))
  return files.flatMap((name) =>
    Array.from(readFileSync(source + name, 'utf8').matchAll(ROUTE), ([, method, path = '', access = '']) => ({
      method: method === 'get' ? ('GET' as const) : ('POST' as const),
      path: path.replaceAll('\\\\', '\\'),
      access,
    })),
  )
}
