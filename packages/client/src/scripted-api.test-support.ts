// An API whose answers a test scripts. Each request is answered by the next function, and all
// further ones by the last.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestScope } from '@sluice/test-support'
import { type Client, type ClientOptions, createClient } from './client.ts'
import type { Problem, ThreadRequest } from './contract.ts'

/** A request that the API received. */
export interface Received {
  line: string
  headers: IncomingMessage['headers']
  body: string
}

export type Answer = (response: ServerResponse, request: Received) => unknown

export interface ScriptedApi {
  url: string
  received: Received[]
  client(options?: Partial<ClientOptions>): Client
}

export const KEY = 'slc_key'

export async function scriptApi(
  t: TestScope,
  ...answers: [Answer, ...Answer[]]
): Promise<ScriptedApi> {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    const answer = answers[Math.min(received.length, answers.length - 1)]
    const got = { line: `${request.method} ${request.url}`, headers: request.headers, body }
    received.push(got)
    await answer?.(response, got)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.onTestFinished(() => {
    server.closeAllConnections()
    return new Promise((closed) => server.close(closed))
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, received, client: (options) => createClient({ url, apiKey: KEY, ...options }) }
}

export function aThread(externalId: string, fields: Partial<ThreadRequest> = {}): ThreadRequest {
  return { service: 'slack', externalId, title: 'Which keyboard?', quotes: [], ...fields }
}

export function aProblem(
  status: number,
  code: Problem['code'],
  more: Partial<Problem> = {},
): Problem {
  return {
    type: 'about:blank',
    title: 'A problem',
    status,
    detail: 'It went wrong.',
    code,
    requestId: 'r1',
    ...more,
  }
}

/** Answers a whole request with a problem. */
export function refuse(
  status: number,
  code: Problem['code'],
  headers: Record<string, string> = {},
): Answer {
  return (response) =>
    response
      .writeHead(status, { 'content-type': 'application/problem+json', ...headers })
      .end(JSON.stringify(aProblem(status, code)))
}

/** The threads of an import. */
export function threadsIn({ body }: Received): ThreadRequest[] {
  return body
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

/** The result lines of an import whose threads are all stored. */
export function storedLines(request: Received): string[] {
  return threadsIn(request).map(({ externalId }, index) => {
    const quotes = { created: 0, updated: 0, unchanged: 0 }
    return JSON.stringify({
      index,
      externalId,
      status: 200,
      outcome: 'created',
      id: `id-${externalId}`,
      wordCount: 0,
      quotes,
    })
  })
}

export function failedLine(index: number, problem: Problem): string {
  return JSON.stringify({ index, line: index + 1, status: problem.status, problem })
}

export function sendLines(response: ServerResponse, lines: readonly string[]): void {
  const summary = JSON.stringify({ summary: { received: lines.length } })
  response
    .writeHead(200, { 'content-type': 'application/x-ndjson' })
    .end(`${[...lines, summary].join('\n')}\n`)
}

/** Stores all threads of an import. */
export const store: Answer = (response, request) => sendLines(response, storedLines(request))

/** Answers an import with this text, and breaks the connection once the caller may have read it. */
export async function breakOff(response: ServerResponse, text: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  await new Promise((written) => response.write(text, written))
  response.destroy()
}
