import type { NextFunction, Request, Response } from 'express'

/**
 * Refuses what another site's page sends by the browser of somebody who may see the dashboard (cross-site request forgery): it has no login, so
 * being able to reach it is all that such a page would need. Browsers name the origin on everything but plain reads.
 */
export function refuseForeign({ headers }: Request, response: Response, next: NextFunction): void {
  const { origin, host } = headers
  if (origin === undefined || hostOf(origin) === host) next()
  else response.status(403).json({ error: 'requests of other sites are refused' })
}

function hostOf(origin: string): string | undefined {
  return URL.parse(origin)?.host
}
