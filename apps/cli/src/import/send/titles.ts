// Finds the titles of threads whose root is not in the input: the stored title stays, else a placeholder is used.
import type { Client } from '@sluice/client'
import type { ThreadRequest } from '@sluice/contract'
import type { Outgoing, UntitledRequest } from '../account/ledger.ts'

/** Batches in flight, and what they send: their titles may not be stored yet. */
export type InFlight = Map<Promise<void>, readonly ThreadRequest[]>

/** Lookups at a time. */
const LOOKUPS = 16

/** Stands for a title that neither input nor store has. The API refuses it, and names the field. */
const NO_TITLE = ''

/** The requests of a batch, with titles. */
export async function completeTitles(
  batch: readonly Outgoing[],
  inFlight: InFlight,
  client: Pick<Client, 'getSource'>,
  signal: AbortSignal,
): Promise<ThreadRequest[]> {
  const untitled = new Map<string, Outgoing>()
  for (const one of batch) if (one.request.title === undefined) untitled.set(sourceOf(one.request), one)
  const earlier = [...inFlight].filter(([, requests]) => requests.some((request) => untitled.has(sourceOf(request))))
  await Promise.all(earlier.map(([sent]) => sent))
  const titles = new Map<string, string>()
  const queue = untitled.entries()
  const work = async () => {
    for (const [source, { request, placeholderTitle }] of queue) {
      const { service, externalId } = request
      const stored = await client.getSource({ service, externalId }, { limit: 1, signal })
      titles.set(source, stored?.source.title ?? placeholderTitle ?? NO_TITLE)
    }
  }
  await Promise.all(Array.from({ length: LOOKUPS }, work))
  return batch.map(({ request }) => {
    // An earlier request of the batch may bring the title that is not stored yet.
    if (request.title !== undefined) titles.set(sourceOf(request), request.title)
    return { ...request, title: request.title ?? titles.get(sourceOf(request)) ?? NO_TITLE }
  })
}

function sourceOf({ service, externalId }: UntitledRequest): string {
  return `${service}/${externalId}`
}
