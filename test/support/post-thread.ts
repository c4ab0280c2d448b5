// Posts threads and records each answer in the ledger's terms.
import { randomUUID } from 'node:crypto'
import { type Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'

/** The API to post to, and the key. */
export interface Target {
  url: string
  key: string
  /** Each request then has a connection of its own. */
  connection?: 'close' | undefined
  /** Reuses connections. Default: Node's global agent. */
  agent?: Agent | undefined
}

/**
 * A posted thread and the answer that its caller got, recorded outside of everything under test.
 */
export interface Posted {
  externalId: string
  title: string
  /** The quotes that this request gave. */
  quotes: string[]
  /** The request deleted the thread. */
  deletes?: true
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
 * A thread that no other test posts, unless it is named. Its title names the request, so that a
 * stored title shows which request came last.
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
  target: Target,
  thread: ReturnType<typeof aThread>,
  prefer?: string,
  idempotencyKey?: string,
): Promise<Posted> {
  const sentAt = performance.now()
  const heard = await send(target, thread, { prefer, 'idempotency-key': idempotencyKey })
  return { ...namesIn(thread), ...heard, sentAt, ms: performance.now() - sentAt }
}

/** Deletes a thread and records the answer. Never throws. */
export async function deleteThread(
  target: Target,
  externalId: string,
  prefer?: string,
): Promise<Posted> {
  const sentAt = performance.now()
  const heard = await send(
    target,
    undefined,
    { prefer },
    `?service=custom&externalId=${externalId}`,
  )
  const names = { externalId, title: '', quotes: [], deletes: true as const }
  return { ...names, ...heard, sentAt, ms: performance.now() - sentAt }
}

/** The part of a ledger's entry that follows from the request. */
export function namesIn({ externalId, title, quotes }: ReturnType<typeof aThread>) {
  return { externalId, title, quotes: quotes.map((quote) => quote.externalId) }
}

async function send(
  { url, key, agent, connection }: Target,
  thread: unknown,
  preferences: Record<string, string | undefined>,
  toDelete?: string,
): Promise<Pick<Posted, 'status' | 'headers' | 'body'>> {
  const optional = Object.entries({ ...preferences, connection }).filter(
    ([, value]) => value !== undefined,
  )
  const headers = {
    'content-type': 'application/json',
    'x-api-key': key,
    ...Object.fromEntries(optional),
  }
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const method = toDelete === undefined ? 'POST' : 'DELETE'
      const sending = request(
        `${url}/sources${toDelete ?? ''}`,
        { method, headers, agent },
        resolve,
      )
      sending.on('error', reject).end(thread && JSON.stringify(thread))
    })
    const body: Posted['body'] = JSON.parse(await text(response))
    const heard = new Headers()
    for (const [name, value] of Object.entries(response.headers)) heard.set(name, String(value))
    return { status: response.statusCode ?? 0, headers: heard, body }
  } catch (cause) {
    return { status: 'none', headers: new Headers(), body: { cause: String(cause) } }
  }
}
