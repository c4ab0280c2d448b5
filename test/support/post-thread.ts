// Posts threads and records each answer in the ledger's terms.
import { randomUUID } from 'node:crypto'

/** The API to post to, and the key. */
export interface Target {
  url: string
  key: string
  /** Each request then has a connection of its own. */
  connection?: 'close' | undefined
}

/** A posted thread and the answer that its caller got, recorded outside of everything under test. */
export interface Posted {
  externalId: string
  title: string
  /** The quotes that this request gave. */
  quotes: string[]
  /** `none`: the connection broke, or there was none; the body has the cause. */
  status: number | 'none'
  headers: Headers
  body: Record<string, unknown>
  /** When the first byte was sent, in the time of `performance.now()`. */
  sentAt: number
  /** From the first byte sent to the last one heard, in ms. */
  ms: number
}

/**
 * A thread that no other test posts, unless it is named. Its title names the request, so that a stored title shows
 * which request came last.
 */
export function aThread({
  externalId = String(randomUUID()),
  quotes = 3,
  from = 0,
  text = 'five words in this quote',
} = {}) {
  return {
    service: 'custom' as const,
    externalId,
    title: `Request ${randomUUID()}`,
    quotes: Array.from({ length: quotes }, (_, at) => ({
      externalId: `q${from + at}`,
      text,
      speaker: 'ada',
    })),
  }
}

/** Posts a thread and records its answer. Never throws. */
export async function postThread(
  { url, key, connection }: Target,
  thread: ReturnType<typeof aThread>,
  prefer?: string,
  idempotencyKey?: string,
): Promise<Posted> {
  const sentAt = performance.now()
  const heard = await send(url, key, thread, { prefer, connection, 'idempotency-key': idempotencyKey })
  return { ...namesIn(thread), ...heard, sentAt, ms: performance.now() - sentAt }
}

/** The part of a ledger's entry that follows from the request. */
export function namesIn({ externalId, title, quotes }: ReturnType<typeof aThread>) {
  return { externalId, title, quotes: quotes.map((quote) => quote.externalId) }
}

async function send(
  url: string,
  key: string,
  thread: unknown,
  preferences: Record<string, string | undefined>,
): Promise<Pick<Posted, 'status' | 'headers' | 'body'>> {
  const headers = new Headers({ 'content-type': 'application/json', 'x-api-key': key })
  for (const [name, value] of Object.entries(preferences)) if (value !== undefined) headers.set(name, value)
  try {
    const response = await fetch(`${url}/sources`, { method: 'POST', headers, body: JSON.stringify(thread) })
    const body: Posted['body'] = JSON.parse(await response.text())
    return { status: response.status, headers: response.headers, body }
  } catch (error) {
    const cause = error instanceof Error ? String(error.cause ?? error) : error
    return { status: 'none', headers: new Headers(), body: { cause } }
  }
}
