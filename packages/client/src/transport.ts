// Sends an HTTP request and returns its answer, or throws an error that says why there is none.
import type { CallOptions } from './abort.ts'
import type { Service } from './contract.ts'
import { problemOf, SluiceUnreachable } from './request-errors.ts'

export interface TransportOptions {
  /** The address of the API, such as `http://127.0.0.1:3000`. */
  url: string
  /** The key of an importer. */
  apiKey: string
  /** Replaces Node's `fetch`, for example for proxies, certificates or tests. */
  fetch?: typeof globalThis.fetch | undefined
}

export interface HttpRequest extends CallOptions {
  /** A path relative to the API's URL, with a query. */
  path: string
  /** Default: POST with a body, otherwise GET. */
  method?: 'DELETE' | undefined
  headers?: Readonly<Record<string, string>> | undefined
  body?: string | undefined
}

/**
 * Sends a request. Throws SluiceProblem or SluiceUnreachable unless the status of the answer is 200
 * to 299.
 */
export type Send = (request: HttpRequest) => Promise<Response>

/**
 * Visible ASCII characters. If a key had others, `fetch` would throw an error that contains the
 * key.
 */
const VISIBLE = /^[\x21-\x7e]+$/

/**
 * Creates the function with which a client sends all requests.
 * @throws {TypeError} if the URL or the key can't be used.
 */
export function createTransport({ url, apiKey, fetch = globalThis.fetch }: TransportOptions): Send {
  const base = baseOf(url)
  if (!VISIBLE.test(apiKey))
    throw new TypeError('apiKey must be a key of Sluice, without white space.')

  return async ({ path, method, headers, body, signal }) => {
    signal?.throwIfAborted()
    const init = {
      headers: { ...headers, 'x-api-key': apiKey },
      // Do not follow a redirect, which would send the key to another server.
      redirect: 'manual' as const,
      ...(method !== undefined && { method }),
      ...(body !== undefined && { method: 'POST', body }),
      ...(signal !== undefined && { signal }),
    }
    const response = await readUnlessAborted(signal, () => fetch(new URL(`./${path}`, base), init))
    if (!response.ok) throw await readUnlessAborted(signal, () => problemOf(response))
    return response
  }
}

/** The fields of a thread that identify its source. */
export interface SourceName {
  service: Service
  externalId: string
}

/** A source, by its id or its name. */
export type SourceReference = string | SourceName

type Query = Readonly<Record<string, string | number | undefined>>

/** Returns the path of a source. */
export function pathOfSource(source: SourceReference, query: Query): string {
  if (typeof source === 'string') return `sources/${encodeURIComponent(source)}${queryOf(query)}`
  return `sources${queryOf({ service: source.service, externalId: source.externalId, ...query })}`
}

/** Returns a query with its question mark, of the parameters that have a value. */
export function queryOf(params: Query): string {
  const present = Object.entries(params).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  )
  return present.length > 0 ? `?${new URLSearchParams(Object.fromEntries(present))}` : ''
}

/** The header of a body with an item on each line. */
export const NDJSON_BODY = { 'content-type': 'application/x-ndjson' }

/** Reads the body of an answer. */
export function readJson(response: Response, signal: AbortSignal | undefined): Promise<unknown> {
  return readUnlessAborted(signal, () => response.json())
}

/**
 * Runs one step of a request. Throws SluiceUnreachable if it fails, or the reason of an aborted
 * signal.
 */
export async function readUnlessAborted<T>(
  signal: AbortSignal | undefined,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    signal?.throwIfAborted()
    if (cause instanceof SluiceUnreachable) throw cause
    // The error of `fetch` only says that it failed. Its cause says why.
    const reason = cause instanceof Error ? (cause.cause ?? cause) : cause
    const text = reason instanceof Error ? reason.message || reason.name : String(reason)
    throw new SluiceUnreachable(`Sluice did not answer: ${text.replace(/\.?$/, '.')}`, { cause })
  }
}

function baseOf(url: string): URL {
  const base = URL.canParse(url) ? new URL(url) : undefined
  if (base === undefined || !/^https?:$/.test(base.protocol))
    throw new TypeError('url must begin with http:// or https://.')
  if (base.username !== '' || base.password !== '')
    throw new TypeError('url must not have a user or a password.')
  base.search = ''
  base.hash = ''
  if (!base.pathname.endsWith('/')) base.pathname += '/'
  return base
}
