import assert from 'node:assert/strict'
import { type Reply, undocumentedIn } from './documented.ts'

export type { Reply }

/** The options of a request. A body that is neither text nor bytes is sent as JSON. */
export interface Sent {
  method?: string
  headers?: Record<string, string>
  body?: unknown
}

/** One user of the API with one key. */
export interface Caller {
  /** `POST /sources` of this body. A header given as '' is left out. */
  post(body: unknown, headers?: Record<string, string>): Promise<Reply>
  /** `POST /sources:batch` of this body, as lines unless a header says otherwise. */
  postImport(body: unknown, headers?: Record<string, string>): Promise<Reply>
  get(path: string, headers?: Record<string, string>): Promise<Reply>
  send(path: string, sent: Sent): Promise<Reply>
}

/**
 * Longer than any deadline that the tests set, so that a hang fails its row and not the whole run.
 */
const HANG_MS = 100_000

/**
 * Calls an API as its users do, and checks that `/openapi.json` has everything of each answer.
 * Without a key none is sent.
 */
export function createCaller({ url, key }: { url: string; key?: string }): Caller {
  const send = async (
    path: string,
    { method = 'GET', headers = {}, body }: Sent,
  ): Promise<Reply> => {
    const given = Object.entries({ ...(key !== undefined && { 'x-api-key': key }), ...headers })
    const response = await fetch(url + path, {
      method,
      headers: given.filter(([, value]) => value !== ''),
      ...(body !== undefined && { body: asBody(body) }),
      redirect: 'manual',
      signal: AbortSignal.timeout(HANG_MS),
    })
    const reply = {
      status: response.status,
      headers: response.headers,
      text: await response.text(),
    }
    // `fetch` sends no dot segments.
    const { pathname } = new URL(url + path)
    const undocumented = undocumentedIn(method, pathname, reply)
    assert.equal(
      undocumented,
      undefined,
      `${undocumented}: ${method} ${path} → ${reply.status} ${reply.text.slice(0, 600)}`,
    )
    return reply
  }
  return {
    send,
    get: (path, headers = {}) => send(path, { headers }),
    post: (body, headers = {}) =>
      send('/sources', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
      }),
    postImport: (body, headers = {}) =>
      send('/sources:batch', {
        method: 'POST',
        headers: { 'content-type': 'application/x-ndjson', ...headers },
        body,
      }),
  }
}

/** A body as it is sent. Text becomes bytes, so that `fetch` adds no Content-Type. */
function asBody(body: unknown): Uint8Array<ArrayBuffer> {
  if (body instanceof Uint8Array) return new Uint8Array(body)
  return new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body))
}
