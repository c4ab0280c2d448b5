import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { type aThread, namesIn, type Posted, type Target } from '../support/post-thread.ts'

/** A request whose last byte is still withheld. */
export interface OpenRequest {
  /** Sends the last byte. */
  finish(): void
  /** The posted request, as if it had been accepted. */
  posted: Posted
  /** The whole answer. Rejects if the connection breaks before. */
  answer: Promise<{ status: number; body: Record<string, unknown>; connection: string | undefined }>
}

/**
 * Sends a post without its last byte. Resolves when the API reads the body (it confirms that with
 * 100 Continue) and all those bytes are sent.
 */
export async function openRequest(
  target: Target,
  thread: ReturnType<typeof aThread>,
): Promise<OpenRequest> {
  const body = Buffer.from(JSON.stringify(thread))
  const open = sendHead(target, body.length)
  const answer = answerTo(open)
  answer.catch(() => {})
  await once(open, 'continue')
  await new Promise((sent) => open.write(body.subarray(0, -1), sent))
  const about = { status: 202, headers: new Headers(), body: {}, sentAt: performance.now(), ms: 0 }
  const posted = { ...namesIn(thread), ...about }
  return { posted, finish: () => open.end(body.subarray(-1)), answer }
}

/**
 * Sends the head of a post, which asks for `100 Continue` before its body of this number of bytes.
 */
export function sendHead({ url, key }: Target, bytes: number): ClientRequest {
  const headers = {
    'content-type': 'application/json',
    'x-api-key': key,
    'content-length': bytes,
    expect: '100-continue',
  }
  const open = request(`${url}/sources`, { method: 'POST', headers, agent: false })
  open.flushHeaders()
  return open
}

async function answerTo(open: ClientRequest): OpenRequest['answer'] {
  const [response]: IncomingMessage[] = await once(open, 'response')
  if (response === undefined) throw new Error('no response')
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const { statusCode = 0, headers } = response
  return {
    status: statusCode,
    body: JSON.parse(Buffer.concat(chunks).toString()),
    connection: headers.connection,
  }
}
