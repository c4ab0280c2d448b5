// Deletes one source, or any number of sources in chunks.
import type { DeletedItem, DeletionAnswer, RefusedItem } from './contract.ts'
import { quotedString } from './post-thread.ts'
import type { RetryOptions } from './retries.ts'
import {
  type HttpRequest,
  NDJSON_BODY,
  pathOfSource,
  queryOf,
  type SourceReference,
} from './transport.ts'

export interface DeleteManyOptions extends RetryOptions {
  /** The tenant of the sources: required with the key of an operator. */
  tenant?: string | undefined
}

export interface DeleteOptions extends DeleteManyOptions {
  /** By default, a new one for each call, which all of its attempts share. */
  idempotencyKey?: string | undefined
}

/** Deletes a source. All attempts have one Idempotency-Key, so they are one deletion. */
export async function sendDeletion(
  ask: (request: HttpRequest & RetryOptions) => Promise<unknown>,
  source: SourceReference,
  { tenant, idempotencyKey = crypto.randomUUID(), signal, onRetry }: DeleteOptions,
): Promise<DeletionAnswer> {
  const headers = { 'idempotency-key': quotedString(idempotencyKey) }
  const path = pathOfSource(source, { tenant })
  // The service answers by the schemas of the contract, from which these types are generated.
  return (await ask({ path, method: 'DELETE', headers, signal, onRetry })) as DeletionAnswer
}

const CHUNK = 1_000

/** Deletes sources in chunks, one after the other, and yields the results in their order. */
export async function* deleteChunks(
  askText: (request: HttpRequest & RetryOptions) => Promise<string>,
  sources: Iterable<SourceReference> | AsyncIterable<SourceReference>,
  { tenant, signal, onRetry }: DeleteManyOptions,
): AsyncGenerator<DeletedItem | RefusedItem, void, undefined> {
  const path = `sources:delete${queryOf({ tenant })}`
  let index = 0
  let lines: string[] = []

  async function* flush(): AsyncGenerator<DeletedItem | RefusedItem> {
    const body = lines.map((line) => `${line}\n`).join('')
    lines = []
    const text = await askText({ path, headers: NDJSON_BODY, body, signal, onRetry })
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
