// Sends fuzzed requests to an API, several at a time, and reports every answer that the documents
// do not have.
import { Agent, type IncomingMessage, request } from 'node:http'
import type { Reply } from '../../e2e/support/caller.ts'
import { undocumentedIn } from '../../e2e/support/documented.ts'
import type { FuzzedRequest } from './fuzzed-request.ts'

/** The API to fuzz, with good keys: of two tenants and of an operator. */
export interface FuzzTarget {
  url: string
  keys: { importer: string; other: string; operator: string }
}

/** What happened so far. */
export interface FuzzReport {
  sent: number
  /** Answers by status. 0: the connection broke without an answer. */
  statuses: Map<number, number>
  /** One text for each answer that is not documented, with its request. */
  findings: string[]
}

/** Enough to meet each other, and few enough to leave a core for those that are measured. */
const AT_ONCE = 3
const HANG_MS = 40_000
const WRONG_KEY = `slc_${'0'.repeat(36)}`
const KNOWN_IDS = 200

/**
 * Opens a fuzzer. `run` sends all requests of one list, `check` checks their answers; close it in
 * the end.
 */
export function openFuzzer({ url, keys }: FuzzTarget) {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
  const known: string[] = []
  const replies: [request: FuzzedRequest, target: string, reply: Reply][] = []
  const report: FuzzReport = { sent: 0, statuses: new Map(), findings: [] }

  /**
   * Sends requests. Answers are checked by `check`, because that would delay the callers that are
   * measured meanwhile.
   */
  async function run(requests: readonly FuzzedRequest[]): Promise<void> {
    const left = requests.values()
    const sendRest = async () => {
      for (const next of left) replies.push([next, ...(await send(next))])
    }
    await Promise.all(Array.from({ length: AT_ONCE }, sendRest))
  }

  /** Checks the answers since the last check. */
  function check(): void {
    for (const [sent, target, reply] of replies.splice(0)) judge(sent, target, reply)
  }

  function judge(sent: FuzzedRequest, target: string, reply: Reply): void {
    report.sent += 1
    report.statuses.set(reply.status, (report.statuses.get(reply.status) ?? 0) + 1)
    const finding = findingIn(sent.method, target, reply)
    if (finding !== undefined)
      report.findings.push(
        `${finding}\n${describe(sent)}\n→ ${reply.status} ${reply.text.slice(0, 600)}`,
      )
    const location = /^\/(?:jobs|batches|admin\/operations)\/(.+)$/.exec(
      reply.headers.get('location') ?? '',
    )?.[1]
    if (location !== undefined && known.length < KNOWN_IDS) known.push(location)
  }

  async function send({
    route,
    method,
    path,
    query,
    id,
    key,
    headers,
    body,
  }: FuzzedRequest): Promise<[target: string, reply: Reply]> {
    const chosen = typeof id === 'string' ? id : (known[id % known.length] ?? '0')
    const [right, role] =
      route.access === 'operator' ? [keys.operator, keys.importer] : [keys.importer, keys.operator]
    const secret = { right, role, other: keys.other, wrong: WRONG_KEY, none: undefined }[key]
    const all = {
      ...body.headers,
      ...headers,
      ...(secret !== undefined && { 'x-api-key': secret }),
      ...(body.bytes.length > 0 && { 'content-length': body.bytes.length }),
    }
    const signal = AbortSignal.timeout(HANG_MS)
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const target = path.replace(':id', chosen).replace(':quoteId', chosen + chosen) + query
    const options = { method, path: target, headers: all, agent, signal }
    request(new URL(url), options, resolve).on('error', reject).end(body.bytes)
    try {
      return [target, await readReply(await promise)]
    } catch (error) {
      return [target, { status: 0, headers: new Headers(), text: String(error) }]
    }
  }

  return { run, check, report, close: () => agent.destroy() }
}

async function readReply(response: IncomingMessage): Promise<Reply> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(response.headersDistinct)) {
    for (const value of values) headers.append(name, value)
  }
  return { status: response.statusCode ?? 0, headers, text: Buffer.concat(chunks).toString() }
}

/**
 * Returns the fault of an answer. A 5xx is a fault although it is documented. Only
 * `operations_full` is the caller's own doing.
 */
function findingIn(method: string, target: string, reply: Reply): string | undefined {
  if (reply.status === 0) return `no answer: ${reply.text}`
  const undocumented = undocumentedIn(method, target, reply)
  if (undocumented !== undefined || reply.status < 500) return undocumented
  return reply.text.includes('"operations_full"') ? undefined : `a ${reply.status}`
}

function describe({ method, path, query, id, key, headers, body }: FuzzedRequest): string {
  const text = Buffer.from(body.bytes).toString('latin1')
  const shown = text.length > 800 ? `${text.slice(0, 800)}… (${text.length} bytes)` : text
  return `${method} ${path}${query} id=${id} key=${key} ${JSON.stringify({ ...body.headers, ...headers })}\n${shown}`
}
