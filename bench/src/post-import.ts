import { Readable } from 'node:stream'
import { Client } from 'undici'
import type { MadeThread } from './threads.ts'

/** Below the 100 MiB that one body may have. */
const BODY_BYTES = 90 * 1024 ** 2
/** Bytes per write to the socket. */
const SLICE_BYTES = 256 * 1024
/** The summary, the last line of an answer, is far shorter. */
const TAIL = 1_000

/**
 * Posts threads as NDJSON imports, one after the other if a single body cannot contain them all.
 * Throws if a thread was not stored.
 */
export async function postImports(
  url: string,
  key: string,
  bodies: readonly Buffer[][],
): Promise<void> {
  const client = new Client(url, { headersTimeout: 300_000, bodyTimeout: 300_000 })
  try {
    for (const lines of bodies) await postImport(client, key, lines)
  } finally {
    await client.close()
  }
}

/** The threads as the lines of as few bodies as possible. */
export function importBodies(threads: readonly MadeThread[]): Buffer[][] {
  const bodies: Buffer[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const { body } of threads) {
    bytes += body.length + 1
    if (bytes > BODY_BYTES) {
      bodies.push([])
      bytes = body.length + 1
    }
    bodies.at(-1)?.push(body)
  }
  return bodies
}

async function postImport(client: Client, key: string, lines: readonly Buffer[]): Promise<void> {
  const headers = { 'x-api-key': key, 'content-type': 'application/x-ndjson' }
  const { statusCode, body } = await client.request({
    method: 'POST',
    path: '/sources:batch',
    headers,
    body: Readable.from(slicesOf(lines)),
  })
  let tail = ''
  for await (const chunk of body) tail = (tail + chunk).slice(-TAIL)
  if (statusCode !== 200) throw new Error(`The import was answered ${statusCode}: ${tail}`)
  const { summary } = JSON.parse(tail.trimEnd().split('\n').at(-1) ?? '')
  if (summary?.received !== lines.length || summary.failed !== 0)
    throw new Error(`Of an import of ${lines.length}: ${tail}`)
}

function* slicesOf(lines: readonly Buffer[]): Generator<Buffer> {
  const newline = Buffer.from('\n')
  let slice: Buffer[] = []
  let bytes = 0
  for (const line of lines) {
    slice.push(line, newline)
    bytes += line.length + 1
    if (bytes < SLICE_BYTES) continue
    yield Buffer.concat(slice)
    slice = []
    bytes = 0
  }
  yield Buffer.concat(slice)
}
