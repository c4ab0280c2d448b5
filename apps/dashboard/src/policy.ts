// The dashboard's policy: the actions it allows, the hosts and sites it accepts them from, and the part of a payload
// that it shows.
import { isIPv6 } from 'node:net'
import type { BeforeHook } from '@bull-board/api/typings/app'
import type { RequestHandler, Response } from 'express'

/** Operators may promote jobs, and pause and resume a queue. Failed jobs are retried by `sluice jobs retry`. */
const ALLOWED_ROUTES = new Set([
  '/api/queues/:queueName/:jobId/promote',
  '/api/queues/:queueName/promote',
  '/api/queues/:queueName/pause',
  '/api/queues/:queueName/resume',
  '/api/queues/pause',
  '/api/queues/resume',
])

/**
 * Refuses every action that would lose an accepted request (remove, clean, empty), and every edit of a payload: the
 * page shows payloads cut, so an edit would store one cut.
 */
export const allowActions: BeforeHook = ({ method, route }) => {
  if (method === 'get' || ALLOWED_ROUTES.has(route)) return { allow: true }
  return { allow: false, status: 405, message: 'The dashboard neither removes nor changes an accepted request.' }
}

/** The names of this machine, by which a browser on it reaches the dashboard, directly or through a tunnel. */
const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]']

/**
 * The host names that browsers may use: those of the setting, else the address that the dashboard listens on and this
 * machine's own names.
 */
export function allowedHosts(setting: string | null, address: string): string[] {
  const named = setting === null ? [address, ...LOCAL_HOSTS] : setting.split(',')
  return named
    .map((name) => hostnameOf(isIPv6(name.trim()) ? `[${name.trim()}]` : name.trim()))
    .filter((name) => name !== '')
}

/** The name in a `Host` header, in its canonical form and without the port; '' if it is not valid. */
function hostnameOf(host: string): string {
  return URL.parse(`http://${host}`)?.hostname ?? ''
}

/**
 * Refuses a request for another host name (DNS rebinding): a page of any site can have its own name resolve to this
 * machine, and then its requests count as those of one site. Only the name in the `Host` header shows it.
 */
export function refuseOtherHosts(hosts: readonly string[]): RequestHandler {
  return ({ headers }, response, next) => {
    if (hosts.includes(hostnameOf(headers.host ?? ''))) next()
    else refuse(response, 'this host name is not in DASHBOARD_HOSTS')
  }
}

/**
 * Refuses requests from pages of other sites (cross-site request forgery). The dashboard has no login, so such a page
 * only needs the browser of somebody who can reach it. Browsers send the origin with every request but plain reads, and
 * newer ones say with each request where it comes from. A link on another site may open the page itself.
 */
export const refuseOtherSites: RequestHandler = ({ headers, method, path }, response, next) => {
  const { origin, host } = headers
  const site = headers['sec-fetch-site'] ?? 'none'
  const isLink = method === 'GET' && !path.startsWith('/api/') && headers['sec-fetch-mode'] === 'navigate'
  const isOwnOrigin = origin === undefined || URL.parse(origin)?.host === host
  if (isOwnOrigin && (site === 'same-origin' || site === 'none' || isLink)) next()
  else refuse(response, 'requests from other sites are refused')
}

function refuse(response: Response, error: string): void {
  response.status(403).json({ error })
}

// Enough to recognise a thread; a page of ten jobs stays far below a megabyte.
const SHOWN_CHARACTERS = 300
const SHOWN_ELEMENTS = 10
const SHOWN_FIELDS = 50

// A job's data, its threads, one thread, its quotes, one quote and its fields: deeper levels belong to no payload of
// ours.
const SHOWN_LEVELS = 6

/** Cuts a job's payload for display: long texts and lists end with the length of the rest. */
export function cutPayload(value: unknown, levels = SHOWN_LEVELS): unknown {
  if (typeof value === 'string') return cutText(value)
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) return '…'
  return Array.isArray(value) ? cutList(value, levels - 1) : cutRecord(value, levels - 1)
}

function cutText(text: string): string {
  const left = text.length - SHOWN_CHARACTERS
  return left <= 0 ? text : `${text.slice(0, SHOWN_CHARACTERS).toWellFormed()}… (${left} more characters)`
}

function cutList(list: readonly unknown[], levels: number): unknown[] {
  const shown = list.slice(0, SHOWN_ELEMENTS).map((element) => cutPayload(element, levels))
  const left = list.length - shown.length
  return left === 0 ? shown : [...shown, `… (${left} more)`]
}

function cutRecord(record: object, levels: number): object {
  const fields = Object.entries(record).slice(0, SHOWN_FIELDS)
  return Object.fromEntries(fields.map(([name, value]) => [name, cutPayload(value, levels)]))
}
