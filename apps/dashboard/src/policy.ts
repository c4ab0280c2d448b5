// Decides from which hosts and sites the dashboard accepts requests, and what its pages may load.
import { isIPv6 } from 'node:net'
import type { Settings } from '@sluice/process'
import type { RequestHandler } from 'express'
import type { dashboardSettings } from './settings.ts'

type HostSettings = Pick<Settings<typeof dashboardSettings>, 'hosts' | 'url' | 'host'>

/**
 * Makes a policy by which a page may load only the dashboard's own files, even if a job's text were
 * treated as HTML. No other site may frame the page.
 *
 * @param sources the allowed sources of styles, targets of forms, and base addresses.
 */
export function contentSecurityPolicy({
  style,
  form,
  base,
}: Record<'style' | 'form' | 'base', string>): string {
  const files = `script-src 'self'; style-src ${style}; img-src 'self' data:; connect-src 'self'`
  return `default-src 'none'; ${files}; form-action ${form}; base-uri ${base}; frame-ancestors 'none'`
}

/**
 * The names by which a browser on this machine reaches the dashboard, directly or through a tunnel.
 */
const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]']

/**
 * Returns the host names that browsers may use: the names in DASHBOARD_HOSTS. If that is not set:
 * the host of DASHBOARD_URL, the address on which the dashboard listens, and the names of this
 * machine.
 */
export function allowedHosts({ hosts, url, host }: HostSettings): string[] {
  const named = hosts?.split(',') ?? [URL.parse(url ?? '')?.hostname ?? '', host, ...LOCAL_HOSTS]
  return named
    .map((name) => hostnameOf(isIPv6(name.trim()) ? `[${name.trim()}]` : name.trim()))
    .filter((name) => name !== '')
}

/**
 * Returns the name in a `Host` header, in canonical form and without the port. Returns '' if it is
 * not valid.
 */
function hostnameOf(host: string): string {
  return URL.parse(`http://${host}`)?.hostname ?? ''
}

/**
 * The dashboard does not accept the name to which a request was sent, or the site from which it
 * came. The message is for people.
 */
export class StrangeRequestError extends Error {
  override readonly name = 'StrangeRequestError'
}

const UNKNOWN_HOST =
  'The host name of this address is not in DASHBOARD_HOSTS. Set DASHBOARD_URL to the address at which browsers reach the dashboard, or add the name to DASHBOARD_HOSTS.'
const OTHER_SITE =
  'Nothing was done: requests from other sites are refused. If you sent this from a page of the dashboard itself, set DASHBOARD_URL to the address in your browser’s address bar, with its port, and restart the dashboard. Programs post to the API, at another address.'

/**
 * Refuses requests to other host names, against DNS rebinding: a foreign site can let its own name
 * resolve to this machine, and browsers then treat the dashboard as a part of that site. Only the
 * name in the `Host` header reveals the attack.
 */
export function refuseOtherHosts(hosts: readonly string[]): RequestHandler {
  return ({ headers }, _response, next) => {
    next(
      hosts.includes(hostnameOf(headers.host ?? ''))
        ? undefined
        : new StrangeRequestError(UNKNOWN_HOST),
    )
  }
}

/**
 * Refuses requests from pages of other sites (cross-site request forgery), with which the browser
 * would send its session. Browsers send `origin` with every request except plain reads, and newer
 * browsers send `sec-fetch-site` with every request. A link on another site may open a page.
 *
 * @param url DASHBOARD_URL. Its origin is accepted with any `Host`, because many proxies leave out
 * the port.
 */
export function refuseOtherSites(url: string | null): RequestHandler {
  const ownOrigin = URL.parse(url ?? '')?.origin
  return ({ headers, method }, _response, next) => {
    const { origin, host } = headers
    const site = headers['sec-fetch-site'] ?? 'none'
    const isRead = method === 'GET' || method === 'HEAD'
    const isLink = isRead && headers['sec-fetch-mode'] === 'navigate'
    const isOwn =
      origin === undefined ? isRead : origin === ownOrigin || URL.parse(origin)?.host === host
    const isAccepted = isOwn && (site === 'same-origin' || site === 'none' || isLink)
    next(isAccepted ? undefined : new StrangeRequestError(OTHER_SITE))
  }
}
