// The dashboard's policy: the actions it allows, the sites it accepts them from, and the part of a payload that it shows.
import type { BeforeHook } from '@bull-board/api/typings/app'
import type { NextFunction, Request, Response } from 'express'

/** Operators may retry and promote jobs, and pause and resume a queue. */
const ALLOWED_ROUTES = new Set([
  '/api/queues/:queueName/:jobId/retry',
  '/api/queues/:queueName/retry/:queueStatus',
  '/api/queues/:queueName/:jobId/promote',
  '/api/queues/:queueName/promote',
  '/api/queues/:queueName/pause',
  '/api/queues/:queueName/resume',
  '/api/queues/pause',
  '/api/queues/resume',
])

/**
 * Refuses every action that would lose an accepted request (remove, clean, empty), and every edit of a payload: the page
 * shows payloads cut, so an edit would store one cut.
 */
export const allowActions: BeforeHook = ({ method, route }) => {
  if (method === 'get' || ALLOWED_ROUTES.has(route)) return { allow: true }
  return { allow: false, status: 405, message: 'The dashboard neither removes nor changes an accepted request.' }
}

/**
 * Refuses requests from pages of other sites (cross-site request forgery). The dashboard has no login, so such a page
 * only needs the browser of somebody who can reach it. Browsers send the origin with every request but plain reads.
 */
export function refuseCrossSite({ headers }: Request, response: Response, next: NextFunction): void {
  const { origin, host } = headers
  if (origin === undefined || URL.parse(origin)?.host === host) next()
  else response.status(403).json({ error: 'requests from other sites are refused' })
}

// Enough to recognise a thread; a page of ten jobs stays far below a megabyte.
const SHOWN_CHARACTERS = 300
const SHOWN_ELEMENTS = 10
const SHOWN_FIELDS = 50

// A job's data, its threads, one thread, its quotes, one quote and its fields: deeper levels belong to no payload of ours.
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
