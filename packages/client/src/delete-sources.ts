// Deletes one source, or any number of sources in chunks.
import type { CallOptions } from './abort.ts'
import type { DeletedItem, DeletionAnswer, RefusedItem, Service } from './contract.generated.ts'
import { quotedString } from './post-thread.ts'
import { type RetryBounds, withRetries } from './retries.ts'
import { readJson, readUnlessAborted, type Send } from './transport.ts'

/** A source, by its id or its name. */
export type SourceReference = string | { service: Service; externalId: string }

export interface DeleteManyOptions extends CallOptions {
  /** The tenant of the sources: required with the key of an operator. */
  tenant?: string | undefined
}

export interface DeleteOptions extends DeleteManyOptions {
  /** Default: a new one. */
  idempotencyKey?: string | undefined
}

/** The parameters that name the source and the tenant. */
const queryOf = (names: object) => {
  const query = new URLSearchParams(
    Object.entries(names).filter(([, value]) => value !== undefined),
  )
  return query.size > 0 ? `?${query}` : ''
}

/** Deletes a source. All attempts have one Idempotency-Key, so they are one deletion. */
export function sendDeletion(
  send: Send,
  retryBounds: RetryBounds,
  source: SourceReference,
  { tenant, idempotencyKey = crypto.randomUUID(), signal }: DeleteOptions,
): Promise<DeletionAnswer> {
  const headers = { 'idempotency-key': quotedString(idempotencyKey) }
  const { service, externalId } = Object(source)
  const of = typeof source === 'string' ? `/${encodeURIComponent(source)}` : ''
  const path = `sources${of}${queryOf({ service, externalId, tenant })}`
  return withRetries(retryBounds, { signal }, async () => {
    const response = await send({ path, method: 'DELETE', headers, signal })
    // The service answers by the schemas of the contract, from which these types are generated.
    return (await readJson(response, signal)) as DeletionAnswer
  })
}

const CHUNK = 1_000
const NDJSON = { 'content-type': 'application/x-ndjson' }

/** Deletes sources in chunks, one after the other, and yields the results in their order. */
export async function* deleteChunks(
  send: Send,
  retryBounds: RetryBounds,
  sources: Iterable<SourceReference> | AsyncIterable<SourceReference>,
  { tenant, signal }: DeleteManyOptions,
): AsyncGenerator<DeletedItem | RefusedItem, void, undefined> {
  const path = `sources:delete${queryOf({ tenant })}`
  let index = 0
  let lines: string[] = []

  async function* flush(): AsyncGenerator<DeletedItem | RefusedItem> {
    const body = lines.map((line) => `${line}\n`).join('')
    lines = []
    const text = await withRetries(retryBounds, { signal }, async () => {
      const response = await send({ path, headers: NDJSON, body, signal })
      return readUnlessAborted(signal, () => response.text())
    })
    const results = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    for (const result of results.slice(0, -1)) yield { ...result, index: index++ }
  }

  for await (const source of sources) {
    lines.push(JSON.stringify(typeof source === 'string' ? { id: source } : source) ?? 'null')
    if (lines.length === CHUNK) yield* flush()
  }
  if (lines.length > 0) yield* flush()
}
