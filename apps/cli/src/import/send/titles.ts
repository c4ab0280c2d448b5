// Finds the titles of threads whose root is not in the input: the stored title stays, else a placeholder is used.
import type { Client } from '@sluice/client'
import type { ThreadRequest } from '@sluice/contract'
import type { Outgoing, UntitledRequest } from '../shape/sink.ts'

export interface Titles {
  /** The requests of a batch, with titles. */
  complete(batch: readonly Outgoing[]): Promise<ThreadRequest[]>
  /** These requests are in flight until the promise resolves: their titles may not be stored yet. */
  follow(requests: readonly ThreadRequest[], sent: Promise<void>): void
}

/** Lookups at a time. */
const LOOKUPS = 16

/** The title of a request for which neither the input nor the store has one. The API refuses it, and names the field. */
const NO_TITLE = ''

export function createTitles(client: Pick<Client, 'getSource'>, signal: AbortSignal): Titles {
  const inFlight = new Map<Promise<void>, readonly ThreadRequest[]>()

  async function lookUp({ service, externalId }: UntitledRequest, placeholder: string | undefined): Promise<string> {
    const stored = await client.getSource({ service, externalId }, { limit: 1, signal })
    return stored?.source.title ?? placeholder ?? NO_TITLE
  }

  /** Waits for requests in flight for these sources: a title that they bring must be stored before it is looked up. */
  async function untilStored(sources: ReadonlySet<string>): Promise<void> {
    const earlier = [...inFlight].filter(([, requests]) => requests.some((request) => sources.has(sourceOf(request))))
    await Promise.all(earlier.map(([sent]) => sent))
  }

  async function findTitles(batch: readonly Outgoing[]): Promise<Map<string, string>> {
    const unknown = new Map<string, Outgoing>()
    for (const one of batch) if (one.request.title === undefined) unknown.set(sourceOf(one.request), one)
    await untilStored(new Set(unknown.keys()))
    const titles = new Map<string, string>()
    const queue = unknown.entries()
    const work = async () => {
      for (const [source, { request, placeholderTitle }] of queue)
        titles.set(source, await lookUp(request, placeholderTitle))
    }
    await Promise.all(Array.from({ length: LOOKUPS }, work))
    return titles
  }

  return {
    async complete(batch) {
      if (batch.every(({ request }) => request.title !== undefined))
        return batch.map(({ request }) => withTitle(request))
      const titles = await findTitles(batch)
      return batch.map(({ request }) => {
        // An earlier request of the batch may bring the title that is not stored yet.
        if (request.title !== undefined) titles.set(sourceOf(request), request.title)
        return withTitle(request, titles.get(sourceOf(request)))
      })
    },
    follow(requests, sent) {
      inFlight.set(sent, requests)
      void sent.then(() => inFlight.delete(sent))
    },
  }
}

function sourceOf({ service, externalId }: UntitledRequest): string {
  return `${service}/${externalId}`
}

function withTitle(request: UntitledRequest, title = NO_TITLE): ThreadRequest {
  return { ...request, title: request.title ?? title }
}
